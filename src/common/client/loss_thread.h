// LossThread: watches the deadlines of holds and announces losses to the program. It does no I/O
// and shares no mutex with threads that do I/O.
#pragma once

#include "common/base/clock.h"
#include "common/client/hold.h"
#include "common/base/log.h"

#include <chrono>
#include <functional>
#include <memory>

namespace baton::internal {

// A single thread waits. To announce a loss it runs stop callbacks of the program. Before that it
// starts another thread that waits instead, so a callback that blocks delays no other announcement.
// At most 256 callbacks may block at the same time. Then the remaining announcements wait until a
// callback returns, and the log says so. The thread that waits runs no stop callbacks at this
// limit, so deadlines, withdrawals of lost tickets and nudges do not depend on the limit.
class LossThread {
 public:
  // on_lost: called for each hold that the LossThread itself declares lost, before or while the
  // loss is announced. Must be short.
  // nudge: called twice a second, and whenever a thread wakes. May be empty.
  // Both are called on any thread of the LossThread.
  LossThread(const Clock& clock, LogFunction log,
             std::function<void(std::shared_ptr<Hold>)> on_lost,
             std::function<void()> nudge = nullptr);
  ~LossThread();  // stop(0)

  void watch(std::shared_ptr<Hold> hold);  // until it is lost or unwatched
  void unwatch(const std::shared_ptr<Hold>& hold);
  void announce(std::shared_ptr<Hold> hold);  // for a hold that the engine has declared lost
  // Waits at most `wait` until all losses that are due are announced. On its own threads it returns
  // false at once.
  bool settle(std::chrono::milliseconds wait) noexcept;

  bool on_thread() const noexcept;

  // Ends the threads after they have announced the queued losses. Waits for them at most `wait`, on
  // its own threads not at all.
  void stop(std::chrono::milliseconds wait) noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace baton::internal
