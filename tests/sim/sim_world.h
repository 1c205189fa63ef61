// The world of a simulation: one virtual clock, one queue of events, one random generator. The seed
// decides the whole run.
#pragma once

#include "common/base/clock.h"
#include "common/base/unique_function.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace baton::sim {

using internal::Nanos;
using internal::Task;
using internal::Time;

class World {
 public:
  explicit World(std::uint64_t seed) : random_(seed) {}

  Time now() const noexcept { return now_; }

  // The seed decides the order of events at the same time.
  void at(Time when, Task task) {
    events_.push_back({std::max(when, now_), random_(), next_++, std::move(task)});
    std::push_heap(events_.begin(), events_.end(), later);
  }
  void after(Nanos delay, Task task) { at(now_ + delay, std::move(task)); }

  // Runs the next event. False: there is no event up to `until`, and now() is `until`.
  bool step(Time until) {
    if (events_.empty() || events_.front().when > until) {
      now_ = until;
      return false;
    }
    std::pop_heap(events_.begin(), events_.end(), later);
    Task task = std::move(events_.back().task);
    now_ = events_.back().when;
    events_.pop_back();
    ++steps_;
    task();
    return true;
  }

  // Random choices.
  std::uint64_t pick(std::uint64_t low, std::uint64_t high) {
    return low + random_() % (high - low + 1);
  }
  bool chance(double p) { return static_cast<double>(random_() % 1'000'000) < p * 1e6; }
  Nanos span(Nanos low, Nanos high) {
    return Nanos(static_cast<std::int64_t>(
        pick(static_cast<std::uint64_t>(low.count()), static_cast<std::uint64_t>(high.count()))));
  }

  // Adds a line to the hash of the run and, after keep_trace(), to the trace.
  void note(const std::string& line) {
    mix(static_cast<std::uint64_t>(now_.time_since_epoch().count()));
    for (const char c : line) mix(static_cast<unsigned char>(c));
    if (keep_trace_) {
      trace_.push_back(std::to_string(now_.time_since_epoch().count() / 1'000'000) + " ms  " +
                       line);
    }
  }
  void keep_trace() { keep_trace_ = true; }
  const std::vector<std::string>& trace() const { return trace_; }
  std::uint64_t hash() const { return hash_; }
  std::uint64_t steps() const { return steps_; }

 private:
  struct Event {
    Time when;
    std::uint64_t tie;
    std::uint64_t number;
    Task task;
  };
  static bool later(const Event& a, const Event& b) {
    return std::tie(a.when, a.tie, a.number) > std::tie(b.when, b.tie, b.number);
  }
  void mix(std::uint64_t value) {
    hash_ ^= value;
    hash_ *= 0x100000001b3ULL;
  }

  std::mt19937_64 random_;
  Time now_{std::chrono::hours(1)};
  std::uint64_t next_ = 0;
  std::vector<Event> events_;  // a heap
  std::uint64_t hash_ = 0xcbf29ce484222325ULL;
  std::uint64_t steps_ = 0;
  bool keep_trace_ = false;
  std::vector<std::string> trace_;
};

}  // namespace baton::sim
