// Session: implements internal::Session with one ZooKeeper session. It connects, keeps the lease,
// and ends; each call is passed to the class that implements it. Every ticket is an ephemeral
// sequential node in the directory of its lock.
#pragma once

#include "common/seam/session.h"
#include "zk/heartbeat.h"
#include "zk/lock_list.h"
#include "zk/operator_calls.h"
#include "zk/outbox.h"
#include "zk/questions.h"
#include "zk/retry_timers.h"
#include "zk/session_context.h"
#include "zk/session_parts.h"
#include "zk/tickets.h"
#include "zk/token_base.h"
#include "zk/watch_sessions.h"
#include "zk/watches.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::zk {

class Session final : public internal::Session, private TransportListener, private TicketsHost {
 public:
  // opened: called once, with Done when the session is ready for use, or with the error. Never
  // called inside the constructor.
  Session(SessionParts parts, SessionListener& listener, Answer<Done> opened);
  ~Session() override;

  void join(const LockName& name, Nonce nonce, Answer<Standing> answer) override;
  void look(const LockName& name, Nonce nonce, const LookHint& hint,
            Answer<Standing> answer) override;
  void peek(const LockName& name, Answer<bool> busy) override;
  WatchId watch(const LockName& name, const Ticket& ticket, const WatchFor& what,
                WatchHandler handler) override;
  void unwatch(WatchId id) override;
  void withdraw(const LockName& name, Nonce nonce, Answer<WithdrawResult> answer) override;
  void verify(const LockName& name, Nonce nonce, Answer<bool> answer) override;
  void inspect(const LockName& name, Answer<LockSnapshot> answer) override;
  void list(std::string_view prefix, Answer<std::vector<std::string>> answer) override;
  void evict(const LockName& name, std::string_view entry_id, Answer<bool> answer) override;
  void settle_token_base(std::uint64_t wanted, Answer<std::uint64_t> answer) override;
  void close(Answer<Done> answer) override;
  std::shared_ptr<LeaseView> lease() const override { return lease_; }
  SessionInfo info() const override;
  std::chrono::milliseconds backstop() const override;

 private:
  void transport_connected(const Connection& connection) override;
  void transport_disconnected() override;
  void transport_ended(Status why, const std::string& detail) override;
  void transport_event(NodeEvent news, const std::string& path) override;
  std::int64_t session_number() const override { return connection_.session; }
  bool must_sync() const override { return watch_sessions_.any(); }
  void tickets_used(bool any) override;
  void renewed();
  void end_session(Errc reason, const std::string& detail);
  void say_goodbye();
  void watch_disconnection();

  const SessionParts parts_;
  Time last_disconnected_;                      // at this time the session had no connection
  std::optional<Time> disconnected_candidate_;  // the next check confirms or drops it
  TimerId disconnected_timer_ = TimerId::none;
  Time disconnected_at_{};
  SessionListener& listener_;
  Answer<Done> opened_;
  std::shared_ptr<LeaseView> lease_;
  Connection connection_;
  bool connected_ = false;
  bool ended_ = false;
  bool closing_ = false;
  Answer<Done> closed_;  // close() waits for a connection
  TimerId closing_timer_ = TimerId::none;
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<Heartbeat> heartbeat_;  // from the first connection on
  Outbox outbox_;
  RetryTimers retries_;
  const SessionContext context_;
  Watches watches_;
  WatchSessions watch_sessions_;
  Tickets tickets_;
  Questions questions_;
  OperatorCalls operator_calls_;
  LockList lock_list_;
  TokenBase token_base_;
};

}  // namespace baton::zk
