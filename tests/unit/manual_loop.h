// A Loop on virtual time that runs only when the test calls it.
#pragma once

#include "common/base/loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>

namespace baton::internal {

// The test's thread is the strand.
class ManualLoop final : public Loop {
 public:
  const Clock& clock() const noexcept override { return clock_; }
  void defer(Task task) override { deferred_.push_back(std::move(task)); }
  TimerId at(Time when, Task task) override;
  void cancel(TimerId id) override;
  void post(Task task) override { posted_.push_back(std::move(task)); }
  void run(Task task) override { step(std::move(task)); }

  // Runs one step and all that it defers or posts. A step that defers without end fails the test.
  void step(Task task);
  // Lets time pass. Timers run when they are due, each as a step.
  void advance(Nanos span);
  // The process is paused: time passes, and nothing runs before the next advance().
  void jump(Nanos span) { clock_.time += span; }
  std::size_t timers() const { return timers_.size(); }

 private:
  struct ManualClock final : Clock {
    Time now() const noexcept override { return time; }
    bool real() const noexcept override { return false; }
    Time time{std::chrono::hours(1)};
  };
  ManualClock clock_;
  std::uint64_t next_timer_ = 1;
  std::map<std::pair<Time, TimerId>, Task> timers_;
  std::deque<Task> deferred_;
  std::deque<Task> posted_;
};

inline TimerId ManualLoop::at(Time when, Task task) {
  if (when == kNever) return TimerId::none;
  const TimerId id{next_timer_++};
  timers_.emplace(std::pair(when, id), std::move(task));
  return id;
}

inline void ManualLoop::cancel(TimerId id) {
  std::erase_if(timers_, [id](const auto& timer) { return timer.first.second == id; });
}

inline void ManualLoop::step(Task task) {
  if (task) task();
  int left = 10'000;
  while (!deferred_.empty() || !posted_.empty()) {
    auto& queue = deferred_.empty() ? posted_ : deferred_;
    if (--left == 0) {
      ADD_FAILURE() << "the strand spins: one step defers work for ever";
      deferred_.clear();
      posted_.clear();
      return;
    }
    Task next = std::move(queue.front());
    queue.pop_front();
    next();
  }
}

inline void ManualLoop::advance(Nanos span) {
  const Time until = clock_.time + span;
  while (!timers_.empty() && timers_.begin()->first.first <= until) {
    auto timer = timers_.extract(timers_.begin());
    clock_.time = std::max(clock_.time, timer.key().first);
    step(std::move(timer.mapped()));
  }
  clock_.time = until;
}

}  // namespace baton::internal
