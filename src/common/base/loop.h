// Loop: the one place where the state of a client is touched. Two kinds: a thread (thread_loop.h)
// and virtual time (the simulator).
#pragma once

#include "common/base/clock.h"
#include "common/base/unique_function.h"

#include <cstdint>
#include <utility>

namespace baton::internal {

enum class TimerId : std::uint64_t { none = 0 };

// All of a client's state is touched by one step at a time ("on the strand"): by the loop's own
// thread, or by a calling thread while the loop is idle (two thread hops cost about 70 us). A
// calling thread does a bounded amount of work for others (strand.h).
// Tasks must not throw; a task that does is logged and dropped.
class Loop {
 public:
  virtual ~Loop() = default;
  virtual const Clock& clock() const noexcept = 0;
  Time now() const noexcept { return clock().now(); }

  // On the strand only.
  virtual void defer(Task task) = 0;  // runs after the current step, before anything else
  virtual TimerId at(Time when, Task task) = 0;  // never earlier than asked; kNever: never
  virtual void cancel(TimerId id) = 0;           // unknown and fired ids are fine

  // From any thread. All tasks of the three run in the order in which they came; run() on the
  // strand itself is defer(). On the loop's own thread, soon; never inside the call.
  virtual void post(Task task) = 0;
  // The same, but a calling thread that is on the strand may run it: for what concerns one waiter.
  virtual void post_brief(Task task) { post(std::move(task)); }
  // At once on this thread if the loop is idle, else post_brief(): for what one caller asks.
  virtual void run(Task task) = 0;

  // Whether somebody with a better clock has to see to it that the loop's thread does not
  // oversleep.
  virtual bool may_oversleep() const noexcept { return false; }
  // Wakes the thread if it should have woken by itself. From any thread, at any time; short.
  virtual void nudge() noexcept {}
};

}  // namespace baton::internal
