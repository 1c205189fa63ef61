// Loop: runs the steps that touch the state of a client, one at a time.
// Two loops have a thread and are built on Strand (strand.h): ThreadLoop (thread_loop.h) waits for
// file descriptors, and CompletionLoop (etcd/completion_loop.h) polls a gRPC completion queue. The
// loops of the tests have no thread and run on virtual time: ManualLoop in the unit and fuzz tests,
// SimLoop in the simulator.
#pragma once

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/unique_function.h"

#include <cstdint>
#include <utility>

namespace baton::internal {

enum class TimerId : std::uint64_t { none = 0 };

// Only one step at a time touches the state of a client; code in such a step is "on the strand". A
// step runs on the loop's own thread, or on a calling thread while the loop is idle (this saves two
// thread hops, about 70 us). A calling thread does a bounded amount of work for other callers
// (strand.h).
// Tasks must not throw. A loop with a thread logs an exception and drops the task.
class Loop {
 public:
  virtual ~Loop() = default;
  virtual const Clock& clock() const noexcept = 0;
  Time now() const noexcept { return clock().now(); }

  // Whether the caller is on the strand. After the loop's thread has ended, every thread is: no
  // step runs any more, and the thread that closes the client destroys its state. A loop without a
  // thread has a single caller, which is always on the strand.
  virtual bool on_strand() const noexcept { return true; }
  void assert_on_strand() const { BATON_ASSERT(on_strand()); }

  // On the strand only.
  virtual void defer(Task task) = 0;  // runs after the current step, before anything else
  virtual TimerId at(Time when, Task task) = 0;  // never runs earlier than `when`; kNever: never
  virtual void cancel(TimerId id) = 0;           // ignores ids that are unknown or have fired

  // The next three may be called from any thread. Their tasks run in the order of the calls, except
  // that run() on the strand is defer().
  // Runs the task soon on the loop's own thread, never inside the call.
  virtual void post(Task task) = 0;
  // Like post(), but a calling thread that is on the strand may run the task. For short tasks that
  // concern a single waiter.
  virtual void post_brief(Task task) { post(std::move(task)); }
  // Runs the task at once on this thread if the loop is idle, otherwise post_brief(). For the
  // request of a single caller.
  virtual void run(Task task) = 0;

  // Whether the loop's thread may sleep beyond its next timer. If true, the client's LossThread,
  // which sleeps on the boot clock, calls nudge() regularly.
  virtual bool may_oversleep() const noexcept { return false; }
  // Wakes the loop's thread if it has slept too long. From any thread, at any time. Does not block.
  virtual void nudge() noexcept {}
};

}  // namespace baton::internal
