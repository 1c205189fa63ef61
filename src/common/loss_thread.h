// LossThread: watches the deadlines of holds and tells users of losses. Does no I/O and shares no
// lock with anybody who does.
#pragma once

#include "common/clock.h"
#include "common/hold.h"
#include "common/log.h"

#include <chrono>
#include <functional>
#include <memory>

namespace baton::internal {

// One thread waits. When it has a loss to announce, which runs stop callbacks of users, it makes
// sure that another one waits in its place: a callback that blocks delays nobody else's loss.
class LossThread {
 public:
  // on_lost: called (any of its threads) for each hold it declared lost itself.
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
