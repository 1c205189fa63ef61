// The clock, the loop and the network of a simulated process.
#pragma once

#include "common/base/loop.h"
#include "sim_world.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>

namespace baton::sim {

// A clock that runs at its own rate. With the seeded bugs monotonic_clock and wall_clock it is
// wrong in the way that such a clock is.
class SimClock final : public internal::Clock {
 public:
  SimClock(const World& world, std::int64_t ppm) : world_(world), origin_(world.now()), ppm_(ppm) {}
  Time now() const noexcept override;
  bool real() const noexcept override { return false; }
  // The earliest world time at which now() is at least `local`. May be some microseconds too early.
  Time world_time(Time local) const;
  void suspended_for(Nanos span) { suspended_ += span; }  // a monotonic clock stops for this time
  void stepped_by(Nanos span) { stepped_ += span; }       // a wall clock is set by this time

 private:
  Nanos wrong() const noexcept;

  const World& world_;
  const Time origin_;
  const std::int64_t ppm_;
  Nanos suspended_{};
  Nanos stepped_{};
};

// How bad the network is for one client.
struct Weather {
  double lose_request = 0;
  double lose_answer = 0;
  double lose_news = 0;
  double late = 0;   // much later than usual, up to `latest`
  double twice = 0;  // a request is carried out twice
  double reorder = 0;
  double stop_after_beat = 0;  // the process is paused just as it sends a heartbeat
  Nanos latest{};
  bool up = true;    // requests get through
  bool down = true;  // answers get through
};

inline Nanos delay_in(World& world, const Weather& weather) {
  using namespace std::chrono_literals;
  if (world.chance(weather.late)) return world.span(5ms, weather.latest);
  return world.span(100us, 3ms);
}

// One run of a process, from its start to its crash. Events for an earlier run are dropped.
struct Life {
  bool alive = true;
  bool paused = false;
  int pauses = 0;            // number of pauses so far
  std::deque<Task> waiting;  // tasks that arrive while the process is paused
};

class SimLoop final : public internal::Loop {
 public:
  SimLoop(World& world, std::shared_ptr<Life> life, std::int64_t ppm)
      : world_(world), life_(std::move(life)), clock_(world, ppm) {}

  const internal::Clock& clock() const noexcept override { return clock_; }
  SimClock& sim_clock() { return clock_; }
  void defer(Task task) override { deferred_.push_back(std::move(task)); }
  internal::TimerId at(Time when, Task task) override;
  void cancel(internal::TimerId id) override { timers_.erase(id); }
  void post(Task task) override;
  void run(Task task) override { post(std::move(task)); }

  // Delivers a task to the process: now, or when the process is resumed.
  void arrive(Task task);
  void enter(Task task);  // runs the task, then all deferred tasks
  void resume();
  // Drops all tasks of an ended process. The tasks hold references to the objects that own them.
  void clear() {
    life_->waiting.clear();
    deferred_.clear();
    timers_.clear();
  }

 private:
  void fire(internal::TimerId id, Time when);

  World& world_;
  std::shared_ptr<Life> life_;
  SimClock clock_;
  std::deque<Task> deferred_;
  std::uint64_t next_timer_ = 1;
  std::unordered_map<internal::TimerId, Task> timers_;
};

// A clock rate in ppm. Any two such rates differ by less than 1 % (A2).
inline std::int64_t any_rate(World& world) {
  return static_cast<std::int64_t>(world.pick(0, 9'000)) - 4'500;
}

}  // namespace baton::sim
