// WatchSessions: further sessions without nodes, for the watches beyond the budget of the first
// session. Each of them is a lane of Watches.
#pragma once

#include "common/base/lifetime.h"
#include "zk/session_parts.h"
#include "zk/watches.h"

#include <chrono>
#include <memory>
#include <vector>

namespace baton::zk {

class WatchSessions {
 public:
  WatchSessions(const SessionParts& parts, Watches& watches);
  ~WatchSessions();
  WatchSessions(const WatchSessions&) = delete;
  WatchSessions& operator=(const WatchSessions&) = delete;

  // Opens another session and returns its outbox. Null: there are enough sessions, or one has ended
  // less than `pause` ago.
  Outbox* open(std::chrono::milliseconds pause);
  bool any() const noexcept { return !sessions_.empty(); }

  // The first session is being closed: no further session is opened, and a broken connection is no
  // longer reported to the watches.
  void close() noexcept;
  // The first session has ended: nothing is reported to the watches any more.
  void end() noexcept { phase_ = Phase::ended; }

 private:
  class WatchSession;
  enum class Phase { open, closing, ended };

  const SessionParts& parts_;
  Watches& watches_;
  Phase phase_ = Phase::open;
  Time last_end_{};  // when a session ended last
  std::vector<std::unique_ptr<WatchSession>> sessions_;
  Lifetime lifetime_;
};

}  // namespace baton::zk
