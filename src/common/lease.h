// The arithmetic of deadlines (contract: "The deadline"). Pure: no clock is read here.
#pragma once

#include "common/clock.h"

#include <chrono>

namespace baton::internal {

// A lease that is renewed by requests whose *send* time counts (etcd, and the memory store on
// virtual time): deadline = sent + TTL * 0.99 - 20 ms.
Time lease_deadline(Time sent, std::chrono::milliseconds ttl) noexcept;

// ZooKeeper: heartbeats every h = T/8, one at a time, every second one a quorum write.
// deadline = min(sent of last answered heartbeat + 3/4 T - g, sent of last answered write + T)
//            - T * 0.01 - 20 ms, with g = max(h, gap between the last two answered heartbeats).
class HeartbeatLease {
 public:
  explicit HeartbeatLease(std::chrono::milliseconds granted) noexcept;
  static std::chrono::milliseconds interval(std::chrono::milliseconds granted) noexcept;

  // An answered heartbeat; its send time, and whether it was a quorum write. Answers that are older
  // than one seen before are ignored.
  void answered(Time sent, bool write) noexcept;
  // The epoch (long past) until both kinds have been answered once: nothing is proven yet.
  Time deadline() const noexcept;

 private:
  std::chrono::milliseconds granted_;
  Time last_heartbeat_{};
  Nanos gap_{};
  Time last_write_{};
};

}  // namespace baton::internal
