#include "zk/inquiry.h"

#include <utility>

namespace baton::zk {

std::shared_ptr<Inquiry> Inquiry::begin(Loop& loop, Outbox& outbox, Time until, Task late) {
  auto inquiry = std::make_shared<Inquiry>(loop, outbox, until);
  inquiry->late_ = std::move(late);
  inquiry->timer_ = loop.at(until, [weak = inquiry->weak_from_this()] {
    if (const auto self = weak.lock()) self->end();
  });
  return inquiry;
}

Inquiry::~Inquiry() { loop_.cancel(timer_); }

void Inquiry::ask(Request request, Outbox::Answer answer) {
  if (!wanted()) return;  // the timer will call late_
  // The id is set after ask() returns. This is safe because the answer never comes inside ask().
  const auto id = std::make_shared<std::uint64_t>(0);
  *id = outbox_.ask(
      std::move(request),
      [self = shared_from_this(), id, answer = std::move(answer)](
          Reply& reply, std::uint64_t connection) mutable {
        self->asked_.erase(*id);
        if (!self->over_) answer(reply, connection);
      },
      [weak = weak_from_this()] {
        const auto self = weak.lock();
        return self != nullptr && self->wanted();
      });
  asked_.insert(*id);
}

bool Inquiry::finish() {
  if (std::exchange(over_, true)) return false;
  loop_.cancel(timer_);
  late_ = nullptr;
  return true;
}

void Inquiry::end() {
  const auto self = shared_from_this();  // recall() may drop the last other reference
  Task late = std::move(late_);
  if (!finish()) return;
  for (const std::uint64_t id : std::exchange(asked_, {})) outbox_.recall(id);
  if (late) late();
}

}  // namespace baton::zk
