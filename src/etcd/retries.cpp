#include "etcd/retries.h"

#include <chrono>
#include <memory>
#include <utility>

namespace baton::etcd {

namespace {
constexpr std::chrono::milliseconds kRetry{100};
}  // namespace

Retries::~Retries() {
  for (const TimerId timer : timers_) loop_.cancel(timer);
}

void Retries::later(Task task) {
  auto id = std::make_shared<TimerId>(TimerId::none);
  *id = loop_.at(loop_.now() + kRetry, [this, id, task = std::move(task)]() mutable {
    timers_.erase(*id);
    task();
  });
  timers_.insert(*id);
}

}  // namespace baton::etcd
