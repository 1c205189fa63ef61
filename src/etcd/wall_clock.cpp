#include "etcd/wall_clock.h"

#include <mutex>

namespace baton::etcd {

bool wall_clock_was_set_back() noexcept {
  static std::mutex mutex;
  static WallClock clock;
  const std::lock_guard guard(mutex);
  // In this order: a pause between the two looks like a small step back, and is over with the next
  // question.
  const auto wall = std::chrono::system_clock::now();
  return clock.set_back(wall, BootClock::now());
}

}  // namespace baton::etcd
