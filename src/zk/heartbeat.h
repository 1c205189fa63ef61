// Heartbeat: sends heartbeats and computes the session's deadline (contract: "The deadline"). One
// heartbeat is under way at a time, every h = T/8. While a lock is held or awaited, every second
// heartbeat is a write, which a majority must confirm; the others are syncs. A follower answers
// pings and reads without the leader, and a leader without a majority still answers a sync. Only
// sync and write together show how old the state of the server is.
#pragma once

#include "common/seam/lease.h"
#include "common/base/lifetime.h"
#include "common/base/loop.h"
#include "zk/transport.h"

#include <chrono>

namespace baton::zk {

// A node that never exists. Removing it is a write that changes nothing.
inline constexpr const char* kMissingNode = "/zookeeper/baton-nobody/nothing";
// The normal answers of a server to that removal.
inline bool is_missing_node_answer(Status status) noexcept {
  return status == Status::no_node || status == Status::no_auth;
}

class Heartbeat {
 public:
  // renewed: called on the strand when a heartbeat was answered. born: a time not later than the
  // start of the session.
  Heartbeat(Loop& loop, Transport& transport, std::chrono::milliseconds timeout, Time born,
            Task renewed);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  void connected(Time apart);  // beats at once. apart: a time without a connection
  void disconnected();         // no heartbeat is sent until connected()
  // active: a lock is held or awaited. A change to true beats at once if the last write is old.
  void set_active(bool active);

  Time deadline() const noexcept { return lease_.deadline(); }
  // The newest answered heartbeat was a write.
  bool write_was_last() const noexcept { return last_write_ == last_answered_; }
  Time suspect_at() const noexcept;  // from then on, contact is overdue

 private:
  void beat();
  void answered(Time sent, bool write, const Reply& reply);
  void schedule(Time when);
  bool write_is_old() const noexcept;

  Loop& loop_;
  Transport& transport_;
  const Nanos interval_;
  Task renewed_;
  HeartbeatLease lease_;
  bool open_ = false;
  bool active_ = true;  // the first heartbeat is a write: it proves that the store can be used
  bool under_way_ = false;
  bool write_next_ = true;
  std::uint64_t connection_ = 0;
  Time last_sent_{};
  Time last_answered_{};
  Time last_write_{};
  TimerId timer_ = TimerId::none;
  Lifetime lifetime_;
};

}  // namespace baton::zk
