#include "etcd/wall_clock.h"
#include "common/base/mutex.h"

namespace baton::etcd {

bool wall_clock_was_set_back() noexcept {
  static Mutex mutex;
  static WallClock clock BATON_GUARDED_BY(mutex);
  const MutexLock guard(mutex);
  // The wall clock is read first. A pause between the two reads then looks like a small step back,
  // and the next call corrects it. In the other order the pause would raise the greatest offset,
  // and later calls would report a step back.
  const auto wall = std::chrono::system_clock::now();
  return clock.set_back(wall, BootClock::now());
}

}  // namespace baton::etcd
