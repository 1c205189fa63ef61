#include "common/base/clock.h"

#include <time.h>

namespace baton::internal {

BootClock::time_point BootClock::now() noexcept {
  timespec ts{};
  clock_gettime(CLOCK_BOOTTIME, &ts);
  return time_point(std::chrono::seconds(ts.tv_sec) + Nanos(ts.tv_nsec));
}

const Clock& real_clock() noexcept {
  class RealClock final : public Clock {
   public:
    Time now() const noexcept override { return BootClock::now(); }
    bool real() const noexcept override { return true; }
  };
  static const auto* const clock = new RealClock;  // NOLINT: threads may read it during exit
  return *clock;
}

}  // namespace baton::internal
