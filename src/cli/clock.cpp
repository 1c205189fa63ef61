#include "clock.h"

#include <time.h>

#include <algorithm>

namespace baton::cli {

using std::chrono::milliseconds;

BootClock::time_point BootClock::now() noexcept {
  timespec t{};
  clock_gettime(CLOCK_BOOTTIME, &t);
  return time_point(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
}

int poll_timeout(BootClock::time_point until, milliseconds most) noexcept {
  const BootClock::time_point now = BootClock::now();
  if (until <= now) return 0;
  const auto left = until - now;
  return static_cast<int>(left >= most ? most.count()
                                       : std::chrono::ceil<milliseconds>(left).count());
}

}  // namespace baton::cli
