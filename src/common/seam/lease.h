// The arithmetic of deadlines (contract: "The deadline"). Pure: no clock is read here.
#pragma once

#include "common/base/clock.h"

#include <array>
#include <chrono>
#include <cstddef>

namespace baton::internal {

// A lease that is renewed by requests whose *send* time counts (etcd, and the memory store on
// virtual time): deadline = sent + TTL * 0.99 - 20 ms.
Time lease_deadline(Time sent, std::chrono::milliseconds ttl) noexcept;

// ZooKeeper: heartbeats every h = T/8, one at a time, every second one a quorum write.
// deadline = min(sent of last answered heartbeat + 3/4 T - g, sent of last answered write + T,
//                touched + T) - T * 0.01 - 20 ms,
// with g = max(h, gap between the last two answered heartbeats), and `touched` as follows.
//
// The leader counts a session's time from when it hears of it, and of a client on a follower it
// hears with the follower's answers to its pings alone, which come every half tick, at most T/4
// apart. After a stall between the two, answered heartbeats prove less than they seem to: the pings
// may have been answered in a bunch, before ours came. But a ping that the leader sent after
// heartbeat a was answered, and before it got heartbeat p, reached the follower before the answer
// to p (one stream, in order); its own answer went out before heartbeat n, the one after p. So if n
// was answered, the leader has heard of us, and not before a was sent:
// touched = sent of the newest heartbeat a whose answer came T/4 + T * 0.01 + 20 ms or more before
// p was sent.
class HeartbeatLease {
 public:
  // born: not later than the server began to count.
  HeartbeatLease(std::chrono::milliseconds granted, Time born) noexcept;
  static std::chrono::milliseconds interval(std::chrono::milliseconds granted) noexcept;

  // An answered heartbeat: when it was sent, whether it was a quorum write, and when its answer
  // came. Answers that are older than one seen before are ignored.
  void answered(Time sent, bool write, Time at) noexcept;
  // Another connection: to another server, perhaps. The order of messages begins anew; but the
  // server has asked the leader, which has heard of us then. apart: there was none yet at that
  // time.
  void reconnected(Time apart) noexcept;
  // The epoch (long past) until both kinds have been answered once: nothing is proven yet.
  Time deadline() const noexcept;

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
  // Of this connection, the newest last. As many as matter at one beat every h, and some.
  std::array<Beat, 16> beats_{};
  std::size_t count_ = 0;
};

}  // namespace baton::internal
