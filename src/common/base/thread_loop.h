// ThreadLoop: a Loop on a thread of its own, with timers on a Clock and file descriptors.
#pragma once

#include "common/base/clock.h"
#include "common/base/loop.h"
#include "common/base/strand.h"

#include <functional>
#include <memory>
#include <thread>

namespace baton::internal {

// One epoll, one eventfd, one timerfd on CLOCK_BOOTTIME.
class ThreadLoop final : public Loop {
 public:
  using ErrorLog = Strand::ErrorLog;

  // clock: a virtual one must call settle() when it moves. Throws std::system_error.
  ThreadLoop(const Clock& clock, ErrorLog log);
  ~ThreadLoop() override;  // stop()

  const Clock& clock() const noexcept override { return clock_; }
  void defer(Task task) override;
  TimerId at(Time when, Task task) override;
  void cancel(TimerId id) override;
  void post(Task task) override;
  void post_brief(Task task) override;
  void run(Task task) override;

  // On the strand: calls handler (on the loop's thread) whenever fd is readable. Not owned.
  void add_fd(int fd, std::function<void()> handler);
  void remove_fd(int fd);

  // Does everything that is due now, and what follows from it, on this thread. Not on the strand.
  void settle();
  Time next_timer();  // not on the strand

  // Ends the thread and drops what was posted. Idempotent. On the loop's own thread it only asks:
  // the thread ends after the current step, and keeps what it needs alive.
  void stop() noexcept;
  bool on_thread() const noexcept;

 private:
  class State;
  const Clock& clock_;
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace baton::internal
