// ThreadLoop: a Loop with its own thread, which waits for timers and file descriptors.
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

  // When a virtual clock moves, settle() must be called. Throws std::system_error.
  ThreadLoop(const Clock& clock, ErrorLog log);
  ~ThreadLoop() override;  // stop()

  const Clock& clock() const noexcept override { return clock_; }
  bool on_strand() const noexcept override;
  void defer(Task task) override;
  TimerId at(Time when, Task task) override;
  void cancel(TimerId id) override;
  void post(Task task) override;
  void post_brief(Task task) override;
  void run(Task task) override;

  // On the strand. Calls the handler on the loop's thread whenever fd is readable. Does not own fd.
  void add_fd(int fd, std::function<void()> handler);
  void remove_fd(int fd);

  // Runs everything that is due now, and all tasks that result from it, on this thread. Not on the
  // strand.
  void settle();
  Time next_timer();  // not on the strand

  // Ends the thread and drops posted tasks. Idempotent. On the loop's own thread it only asks the
  // thread to end: the thread ends after the current step, and keeps alive what it needs.
  void stop() noexcept;
  bool on_thread() const noexcept;

 private:
  class State;
  const Clock& clock_;
  std::shared_ptr<State> state_;
  std::thread thread_;
};

}  // namespace baton::internal
