// Time as baton counts it: CLOCK_BOOTTIME, which goes on while the machine is suspended.
#pragma once

#include <chrono>
#include <cstdint>

namespace baton::internal {

using Nanos = std::chrono::nanoseconds;

// A point on the boot clock (or on a virtual clock that stands in for it).
struct BootClock {
  using rep = Nanos::rep;
  using period = Nanos::period;
  using duration = Nanos;
  using time_point = std::chrono::time_point<BootClock, Nanos>;
  static constexpr bool is_steady = true;
  // steady_clock stops during suspend; a lease at the server does not.
  static time_point now() noexcept;
};
using Time = BootClock::time_point;

inline constexpr Time kNever = Time::max();

// a + d that stops at kNever instead of overflowing.
constexpr Time saturating_add(Time a, Nanos d) noexcept {
  if (d.count() > 0 && a.time_since_epoch() > kNever.time_since_epoch() - d) return kNever;
  return a + d;
}
constexpr Time saturating_add_ms(Time a, std::chrono::milliseconds d) noexcept {
  if (d.count() > std::chrono::duration_cast<std::chrono::milliseconds>(Nanos::max()).count()) {
    return kNever;
  }
  return saturating_add(a, std::chrono::duration_cast<Nanos>(d));
}

// Follows a clock that moves in jumps.
class TimeListener {
 public:
  virtual ~TimeListener() = default;
  virtual Time next_due() = 0;    // when something is to be done; kNever: nothing
  virtual void time_moved() = 0;  // does all that is due; returns when it is done
};

// Where the current time comes from. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Virtual clocks tell their listeners; a real one needs none.
  virtual void add_listener(TimeListener*) const {}
  virtual void remove_listener(TimeListener*) const {}
  virtual Time now() const noexcept = 0;
  // Whether threads may sleep on it: false for virtual time, which only moves when told.
  virtual bool real() const noexcept = 0;
};

// The boot clock of this machine.
const Clock& real_clock() noexcept;

}  // namespace baton::internal
