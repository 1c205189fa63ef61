// CLOCK_BOOTTIME. All processes of the machine see the same clock, so tests can compare their
// times.
#pragma once

#include <time.h>

#include <chrono>

namespace baton::test {

inline std::chrono::nanoseconds boot_now() {
  timespec t{};
  ::clock_gettime(CLOCK_BOOTTIME, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

// Measures the time since its construction.
class Stopwatch {
 public:
  std::chrono::milliseconds elapsed() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(boot_now() - start_);
  }

 private:
  std::chrono::nanoseconds start_ = boot_now();
};

}  // namespace baton::test
