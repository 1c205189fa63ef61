#include "sim_client.h"

#include "common/mutant.h"

#include <algorithm>
#include <utility>

namespace baton::internal {
#ifdef BATON_MUTANTS
Mutant active_mutant = Mutant::none;
#endif
}  // namespace baton::internal

namespace baton::sim {

using internal::Hold;
using internal::Mutant;
using internal::TimerId;

// ---- clock

Time SimClock::now() const noexcept {
  const auto real = (world_.now() - origin_).count();
  auto local = Nanos(real + real / 1'000'000 * ppm_);
  if (internal::mutant(Mutant::monotonic_clock)) local -= suspended_;
  return origin_ + local;
}

Time SimClock::world_time(Time local) const {
  auto span = (local - origin_).count();
  if (internal::mutant(Mutant::monotonic_clock)) span += suspended_.count();
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
  if (clock_.now() < when) {  // rounding, or a clock that stood still
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

// ---- wire

Nanos SimWire::delay() {
  using namespace std::chrono_literals;
  if (world_.chance(weather_.late)) return world_.span(5ms, weather_.latest);
  return world_.span(100us, 3ms);
}

void SimWire::request(internal::Traffic kind, Task at_store) {
  // The answer then waits in the socket while the deadline passes.
  if (kind == internal::Traffic::heartbeat && world_.chance(weather_.stop_after_beat)) on_beat_();
  if (!weather_.up || world_.chance(weather_.lose_request)) return;
  auto shared = std::make_shared<Task>(std::move(at_store));
  const auto carry = [this, shared](Time when) {
    // Carried out even if the client is dead by then: it was under way.
    world_.at(when, [shared, touched = store_touched_] {
      (*shared)();
      touched();
    });
  };
  Time when = world_.now() + delay();
  if (!world_.chance(weather_.reorder)) when = std::max(when, last_request_);
  last_request_ = std::max(when, last_request_);
  carry(when);
  if (world_.chance(weather_.twice)) carry(when + delay());
}

void SimWire::to_client(Task task) {
  Time when = world_.now() + delay();
  if (!world_.chance(weather_.reorder)) when = std::max(when, last_answer_);
  last_answer_ = std::max(when, last_answer_);
  world_.at(when, [loop = loop_, life = life_, task = std::move(task)]() mutable {
    if (life->alive) loop->arrive(std::move(task));
  });
}

void SimWire::answer(internal::Traffic, Task at_client) {
  if (!life_->alive || !weather_.down || world_.chance(weather_.lose_answer)) return;
  to_client(std::move(at_client));
}

void SimWire::news(Task at_client) {
  if (!life_->alive || !weather_.down || world_.chance(weather_.lose_news)) return;
  to_client(std::move(at_client));
}

// ---- client

SimClient::SimClient(World& world, Witness& witness, int number,
                     std::shared_ptr<internal::MemoryStore> store,
                     const internal::Clock& store_clock, const Weather& weather,
                     std::chrono::milliseconds timeout, std::function<void()> store_touched)
    : world_(world),
      witness_(witness),
      number_(number),
      life_(std::make_shared<Life>()),
      // The ratio of any two clocks stays within 1 % (A2).
      loop_(std::make_shared<SimLoop>(world, life_,
                                      static_cast<std::int64_t>(world.pick(0, 9'000)) - 4'500)),
      wire_(std::make_shared<SimWire>(world, loop_, life_, weather, std::move(store_touched))),
      store_(std::move(store)),
      store_clock_(store_clock),
      timeout_(timeout) {
  engine_ = std::make_unique<internal::Engine>(
      *this, *this, [](LogLevel, std::string_view) {},
      static_cast<std::uint32_t>(world.pick(1, 1U << 30)));
  wire_->on_beat([this] { pause(false, world_.span(timeout_ / 2, timeout_)); });
  loop_->enter([this] { engine_->open([](Result<internal::Done>) {}); });
}

SimClient::~SimClient() {
  life_->alive = false;
  loop_->clear();
}

void SimClient::open(internal::SessionListener& listener,
                     internal::Answer<std::unique_ptr<internal::Session>> answer) {
  internal::MemorySession::open(
      {store_, wire_, loop_.get(), &store_clock_, static_cast<std::uint64_t>(number_),
       "c" + std::to_string(number_), "sim", timeout_, true},
      listener, std::move(answer));
}

void SimClient::hold_granted(const std::shared_ptr<Hold>& hold) {
  witness_.granted(number_, hold);
  watch_deadline(hold);
}

// What the loss thread does: wakes at the deadline, looks whether it has moved, declares the loss.
void SimClient::watch_deadline(const std::shared_ptr<Hold>& hold) {
  loop_->at(hold->lease().deadline(), [this, hold] {
    if (!hold->is_held()) return;
    const Errc due = hold->due_loss();
    if (due == Errc{}) {
      watch_deadline(hold);
    } else if (hold->become_lost(due)) {
      witness_.announced_lost(number_, hold);
      engine_->drop(hold, nullptr);
    }
  });
}

void SimClient::hold_lost(const std::shared_ptr<Hold>& hold) {
  witness_.announced_lost(number_, hold);
}

void SimClient::pause(bool suspend, Nanos span) {
  if (life_->paused) return;
  life_->paused = true;
  // Suspended: the machine's monotonic clock stands still, its boot clock does not.
  if (suspend) loop_->sim_clock().suspended_for(span);
  world_.after(span, [this, life = life_] {
    if (life->alive) loop_->resume();
  });
}

}  // namespace baton::sim
