// LossThread: watches the deadlines of holds and tells users of losses. Does no I/O and shares no
// lock with anybody who does.
#pragma once

#include "common/base/clock.h"
#include "common/client/hold.h"
#include "common/base/log.h"

#include <chrono>
#include <functional>
#include <memory>

namespace baton::internal {

// One thread waits. Before it announces a loss, which runs stop callbacks of the program, it starts
// another thread that waits in its place: a callback that blocks delays no other announcement. At
// most 256 callbacks may block at the same time; then the remaining announcements wait until one
// returns, and the log says so. One more thread never runs stop callbacks: deadlines, withdrawals
// of lost tickets and nudges do not depend on this limit.
class LossThread {
 public:
  // on_lost: called (any of its threads) for each hold it declared lost itself, before or while the
  // loss is announced. Must be short.
  // nudge: called (any of its threads) twice a second and whenever one wakes; none: not needed.
  LossThread(const Clock& clock, LogFunction log,
             std::function<void(std::shared_ptr<Hold>)> on_lost,
             std::function<void()> nudge = nullptr);
  ~LossThread();  // stop(0)

  void watch(std::shared_ptr<Hold> hold);  // until it is lost or unwatched
  void unwatch(const std::shared_ptr<Hold>& hold);
  void announce(std::shared_ptr<Hold> hold);  // it was declared lost elsewhere: tell the user
  void poke() noexcept;                       // virtual time has moved
  // Waits until everything due is announced, or `wait` is over. Not on its own threads.
  bool settle(std::chrono::milliseconds wait) noexcept;

  bool on_thread() const noexcept;

  // Announces what is queued, within `wait`, then ends. On its own thread: returns at once.
  void stop(std::chrono::milliseconds wait) noexcept;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace baton::internal
