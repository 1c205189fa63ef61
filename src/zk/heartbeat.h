// Heartbeat: keeps the session's deadline (contract: "The deadline"). One heartbeat at a time,
// every h = T/8; while anything is held or awaited every second one is a write that a majority must
// confirm. Followers answer pings and reads alone, and a leader that is cut off answers sync alone:
// only the two together tell how old the server's word is.
#pragma once

#include "common/seam/lease.h"
#include "common/base/loop.h"
#include "zk/transport.h"

#include <chrono>
#include <memory>

namespace baton::zk {

class Heartbeat {
 public:
  // renewed: a heartbeat was answered; called on the strand.
  // born: not later than the session.
  Heartbeat(Loop& loop, Transport& transport, std::chrono::milliseconds timeout, Time born,
            Task renewed);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

  void connected(Time apart);  // beats at once. apart: there was no connection at that time
  void disconnected();         // until then none is sent
  // Whether anything is held or awaited. Turning it on beats at once if the last write is old.
  void set_active(bool active);

  Time deadline() const noexcept { return lease_.deadline(); }
  bool write_was_last() const noexcept { return last_write_ == last_answered_; }  // of the answered
  Time suspect_at() const noexcept;  // contact is overdue from then on

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
  std::shared_ptr<bool> alive_;
};

}  // namespace baton::zk
