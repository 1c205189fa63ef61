#include "zk/retry_timers.h"

#include <chrono>
#include <memory>
#include <utility>

namespace baton::zk {

namespace {
constexpr std::chrono::milliseconds kRetry{200};
}  // namespace

RetryTimers::~RetryTimers() {
  for (const TimerId timer : timers_) loop_.cancel(timer);
}

void RetryTimers::retry_later(Task task) {
  if (!outbox_.open()) {
    task();
    return;
  }
  // The connection is open, so the server may be throttling.
  auto id = std::make_shared<TimerId>(TimerId::none);
  *id = loop_.at(loop_.now() + kRetry, [this, id, task = std::move(task)]() mutable {
    timers_.erase(*id);
    task();
  });
  timers_.insert(*id);
}

}  // namespace baton::zk
