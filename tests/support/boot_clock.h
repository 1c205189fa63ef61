// CLOCK_BOOTTIME: the same for all processes of the machine, so intervals compare exactly.
#pragma once

#include <time.h>

#include <chrono>

namespace baton::test {

inline std::chrono::nanoseconds boot_now() {
  timespec t{};
  ::clock_gettime(CLOCK_BOOTTIME, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

// Measures from its construction on.
class Stopwatch {
 public:
  std::chrono::milliseconds elapsed() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(boot_now() - start_);
  }

 private:
  std::chrono::nanoseconds start_ = boot_now();
};

}  // namespace baton::test
