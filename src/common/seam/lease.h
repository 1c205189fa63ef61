// Computes the deadlines of leases (contract: "The deadline"). Pure: reads no clock.
#pragma once

#include "common/base/clock.h"

#include <array>
#include <chrono>
#include <cstddef>

namespace baton::internal {

// The deadline of a lease that counts from the time at which its last answered renewal was *sent*
// (etcd, and the memory store on virtual time): deadline = sent + TTL * 0.99 - 20 ms.
Time lease_deadline(Time sent, std::chrono::milliseconds ttl) noexcept;

// ZooKeeper: heartbeats every h = T/8, one at a time, every second one a quorum write.
// deadline = min(sent of last answered heartbeat + 3/4 T - g, sent of last answered write + T,
//                touched + T) - T * 0.01 - 20 ms,
// with g = max(h, gap between the last two answered heartbeats), and `touched` as follows.
//
// The leader counts the time of a session from the moment at which it last heard of the session. Of
// a client on a follower it hears only through the follower's answers to the leader's pings, which
// come every half tick, at most T/4 apart. After a stall between leader and follower, answered
// heartbeats prove less than they seem to: the follower may have answered the delayed pings all at
// once, before the client's heartbeat came. But consider a ping that the leader sent after
// heartbeat a was answered and before the leader got heartbeat p. The ping reached the follower
// before the answer to p (one stream, in order), and the answer to the ping went out before
// heartbeat n, the next heartbeat after p. So if n was answered, the leader has heard of the
// session, and not before a was sent:
// touched = sent of the newest heartbeat a whose answer came T/4 + T * 0.01 + 20 ms or more before
// p was sent.
class HeartbeatLease {
 public:
  // born: a time not later than the moment at which the server began to count.
  HeartbeatLease(std::chrono::milliseconds granted, Time born) noexcept;
  static std::chrono::milliseconds interval(std::chrono::milliseconds granted) noexcept;

  // Records an answered heartbeat: when it was sent, whether it was a quorum write, and when its
  // answer came. Ignores a heartbeat that was not sent later than the newest recorded heartbeat.
  void answered(Time sent, bool write, Time at) noexcept;
  // Records a new connection, perhaps to another server. The order of messages starts anew. But the
  // new server has asked the leader, so the leader has heard of the session. apart: a time at which
  // the new connection did not exist yet.
  void reconnected(Time apart) noexcept;
  // Returns the epoch, which is long past, until a write was answered: nothing is proven earlier.
  Time deadline() const noexcept;
  // The time between the last two answered heartbeats; zero after the first.
  Nanos gap() const noexcept { return gap_; }

 private:
  struct Beat {
    Time sent{};
    Time answered{};
  };
  std::chrono::milliseconds granted_;
  Time touched_;
  Time last_heartbeat_{};
  Nanos gap_{};
  Time last_write_{};
  // Answered heartbeats of this connection, the newest last. At a heartbeat every h the array holds
  // more than the rule needs.
  std::array<Beat, 16> beats_{};
  std::size_t count_ = 0;
};

}  // namespace baton::internal
