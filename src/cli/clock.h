// BootClock: reads CLOCK_BOOTTIME, the clock of deadlines. It does not stop while the machine
// sleeps, and it is the same in every process, so a deadline can be sent to the guardian.
#pragma once

#include <chrono>

namespace baton::cli {

struct BootClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept;
};

// For poll(2): the milliseconds to `until`, rounded up, at least 0, at most `most`.
int poll_timeout(BootClock::time_point until, std::chrono::milliseconds most) noexcept;

}  // namespace baton::cli
