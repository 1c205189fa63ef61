// Whether the wall clock was set back, and gRPC's timers stand still for it.
#pragma once

#include "etcd/namespace.h"

#include "common/base/clock.h"

#include <algorithm>
#include <chrono>
#include <optional>

namespace baton::etcd {

// gRPC 1.51 sleeps until a time of the wall clock. Set back by an hour, its one thread for timers
// sleeps an hour longer, and with it every timer of the process, those that are made later
// included.
class WallClock {
 public:
  // Both clocks, read together, now and then. True: the wall clock was set back, less long ago than
  // by how much. What is less than a second is not worth it: clocks are put right in small steps
  // all the time.
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
  std::optional<Nanos> highest_;  // how far the wall clock was ahead of ours
  std::optional<Time> since_;     // when it was seen to be set back
};

// The same for this process, now. From any thread. Best asked often: what was set and set back
// between two questions is not seen.
bool wall_clock_was_set_back() noexcept;

}  // namespace baton::etcd
