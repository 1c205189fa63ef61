// RetryTimers: repeats a request whose answer was lost, at once or after a pause.
#pragma once

#include "common/base/loop.h"
#include "zk/outbox.h"

#include <set>

namespace baton::zk {

class RetryTimers {
 public:
  RetryTimers(Loop& loop, const Outbox& outbox) : loop_(loop), outbox_(outbox) {}
  ~RetryTimers();  // tasks that wait are not called
  RetryTimers(const RetryTimers&) = delete;
  RetryTimers& operator=(const RetryTimers&) = delete;

  // Calls the task inside this call if there is no connection, because the outbox waits for one.
  // Otherwise calls it after a pause.
  void retry_later(Task task);

 private:
  Loop& loop_;
  const Outbox& outbox_;
  std::set<TimerId> timers_;
};

}  // namespace baton::zk
