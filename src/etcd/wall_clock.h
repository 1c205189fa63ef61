// WallClock: detects that the wall clock was set back, which stops gRPC's timers.
#pragma once

#include "etcd/namespace.h"

#include "common/base/clock.h"

#include <algorithm>
#include <chrono>
#include <optional>

namespace baton::etcd {

// gRPC 1.51 sleeps until a time of the wall clock. If the wall clock is set back by an hour, gRPC's
// only timer thread sleeps an hour longer. Every gRPC timer of the process is then late, including
// timers that are created afterwards.
class WallClock {
 public:
  // Call it repeatedly, with both clocks read at the same moment. True while the wall clock was set
  // back and less time has passed since then than the size of the step. Steps of less than a second
  // are ignored, because time synchronization makes small corrections all the time.
  bool set_back(std::chrono::system_clock::time_point wall, Time boot) {
    const Nanos ahead = wall.time_since_epoch() - boot.time_since_epoch();
    if (!highest_ || ahead > *highest_ - std::chrono::seconds(1)) {
      highest_ = std::max(highest_.value_or(ahead), ahead);
      since_.reset();
      return false;
    }
    if (!since_) since_ = boot;
    if (boot - *since_ <= *highest_ - ahead) return true;
    highest_ = ahead;
    since_.reset();
    return false;
  }

 private:
  std::optional<Nanos> highest_;  // the greatest offset of the wall clock from the boot clock
  std::optional<Time> since_;     // when the step back was first seen
};

// Calls set_back() with the current clocks of this process. Thread-safe. Call it often: a step back
// and forth between two calls is not seen.
bool wall_clock_was_set_back() noexcept;

}  // namespace baton::etcd
