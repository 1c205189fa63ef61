#include "sim_loop.h"

#include "bugs.h"

#include <algorithm>
#include <utility>

namespace baton::sim {

using internal::TimerId;

// ---- clock

Nanos SimClock::wrong() const noexcept {
  if (seeded(Bug::monotonic_clock)) return -suspended_;
  if (seeded(Bug::wall_clock)) return stepped_;
  return {};
}

Time SimClock::now() const noexcept {
  const auto real = (world_.now() - origin_).count();
  return origin_ + Nanos(real + real / 1'000'000 * ppm_) + wrong();
}

Time SimClock::world_time(Time local) const {
  const auto span = (local - origin_ - wrong()).count();
  return origin_ + Nanos(span - span / (1'000'000 + ppm_) * ppm_);
}

// ---- loop

void SimLoop::enter(Task task) {
  if (task) task();
  while (!deferred_.empty() && life_->alive) {
    Task next = std::move(deferred_.front());
    deferred_.pop_front();
    next();
  }
}

void SimLoop::arrive(Task task) {
  if (!life_->alive) return;
  if (life_->paused) {
    life_->waiting.push_back(std::move(task));
  } else {
    enter(std::move(task));
  }
}

void SimLoop::resume() {
  life_->paused = false;
  auto waiting = std::exchange(life_->waiting, {});
  for (auto& task : waiting) arrive(std::move(task));
}

TimerId SimLoop::at(Time when, Task task) {
  if (when == internal::kNever) return TimerId::none;
  const TimerId id{next_timer_++};
  timers_.emplace(id, std::move(task));
  world_.at(clock_.world_time(when), [this, life = life_, id, when] {
    if (life->alive) fire(id, when);
  });
  return id;
}

void SimLoop::fire(TimerId id, Time when) {
  if (!timers_.contains(id)) return;
  if (clock_.now() < when) {  // because of rounding, or because the clock stopped for a while
    const auto again =
        std::max(clock_.world_time(when), world_.now() + std::chrono::microseconds(1));
    world_.at(again, [this, life = life_, id, when] {
      if (life->alive) fire(id, when);
    });
    return;
  }
  arrive([this, id] {
    auto timer = timers_.extract(id);
    if (!timer.empty()) timer.mapped()();
  });
}

void SimLoop::post(Task task) {
  world_.at(world_.now(), [this, life = life_, task = std::move(task)]() mutable {
    if (life->alive) arrive(std::move(task));
  });
}

}  // namespace baton::sim
