// The clock of baton: CLOCK_BOOTTIME, which also counts while the machine is suspended.
#pragma once

#include <chrono>
#include <cstdint>

namespace baton::internal {

using Nanos = std::chrono::nanoseconds;

// Time points of the boot clock, or of a virtual clock that replaces it.
struct BootClock {
  using rep = Nanos::rep;
  using period = Nanos::period;
  using duration = Nanos;
  using time_point = std::chrono::time_point<BootClock, Nanos>;
  static constexpr bool is_steady = true;
  // Not steady_clock: it stops while the machine is suspended, and a lease at the server does not.
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

// Is notified when a virtual clock moves.
class TimeListener {
 public:
  virtual ~TimeListener() = default;
  virtual Time next_due() = 0;    // when the listener has work to do; kNever: no work is planned
  virtual void time_moved() = 0;  // does all work that is due, and returns when it is done
};

// Where the current time comes from. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  // Virtual clocks notify their listeners. The real clock ignores them.
  virtual void add_listener(TimeListener*) const {}
  virtual void remove_listener(TimeListener*) const {}
  virtual Time now() const noexcept = 0;
  // Whether threads may sleep on this clock. False for virtual time, which moves only when a test
  // moves it.
  virtual bool real() const noexcept = 0;
};

// The boot clock of this machine.
const Clock& real_clock() noexcept;

}  // namespace baton::internal
