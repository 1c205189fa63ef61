// Session: implements internal::Session with a few leases of one etcd cluster. Every ticket is a
// key under the prefix of its lock. etcd deletes the key when its lease ends.
#pragma once

#include "common/seam/session.h"
#include "etcd/key_life.h"
#include "etcd/key_loss.h"
#include "etcd/lock_sequencer.h"
#include "etcd/leases.h"
#include "etcd/link.h"
#include "etcd/operator_calls.h"
#include "etcd/own_tickets.h"
#include "etcd/queue_reader.h"
#include "etcd/session_context.h"
#include "etcd/stray_keys.h"
#include "etcd/watches.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::etcd {

class Session final : public internal::Session, private LinkListener, private LeasesListener {
 public:
  // opened: called with Done once, when the session is ready for use. Before that it is called with
  // an error for each failed attempt; the session then retries, unless it has ended. Never called
  // inside the constructor.
  Session(SessionParts parts, SessionListener& listener, Answer<Done> opened);
  ~Session() override;

  void join(const LockName& name, Nonce nonce, Answer<Standing> answer) override {
    key_life_.join(name, nonce, std::move(answer));
  }
  void look(const LockName&, Nonce nonce, const LookHint& hint, Answer<Standing> answer) override {
    reader_.look(nonce, hint, std::move(answer));
  }
  void peek(const LockName& name, Answer<bool> busy) override {
    reader_.peek(name, std::move(busy));
  }
  WatchId watch(const LockName& name, const Ticket& ticket, const WatchFor& what,
                WatchHandler handler) override;
  void unwatch(WatchId id) override { watches_.unwatch(id); }
  void withdraw(const LockName&, Nonce nonce, Answer<WithdrawResult> answer) override {
    key_life_.withdraw(nonce, std::move(answer));
  }
  void verify(const LockName&, Nonce nonce, Answer<bool> answer) override {
    operator_calls_.verify(question_deadline(), nonce, std::move(answer));
  }
  void inspect(const LockName& name, Answer<LockSnapshot> answer) override {
    operator_calls_.inspect(question_deadline(), name, std::move(answer));
  }
  void list(std::string_view prefix, Answer<std::vector<std::string>> answer) override {
    operator_calls_.list(question_deadline(), prefix, std::move(answer));
  }
  void evict(const LockName& name, std::string_view entry_id, Answer<bool> answer) override {
    operator_calls_.evict(question_deadline(), name, entry_id, std::move(answer));
  }
  void settle_token_base(std::uint64_t wanted, Answer<std::uint64_t> answer) override {
    operator_calls_.settle_token_base(patience(), wanted, std::move(answer));
  }
  void close(Answer<Done> answer) override;
  std::shared_ptr<LeaseView> lease() const override { return lease_; }
  SessionInfo info() const override;
  std::chrono::milliseconds backstop() const override;

 private:
  void begin();
  void link_left(std::size_t endpoint) override;
  void link_back() override;
  void link_store_changed(const std::string& detail) override;
  void leases_renewed() override;
  void leases_lost(const std::string& detail) override;
  void lease_revoked(std::int64_t lease) override;
  void end_session(Errc reason, const std::string& detail);

  Time patience() const { return loop().now() + Nanos(parts_.patience); }
  // Until when the caller of the question that begins now waits.
  Time question_deadline() {
    const Time wanted = take_wanted_until();
    return wanted != kNever ? wanted : patience();
  }

  Loop& loop() const noexcept { return *parts_.link.loop; }

  const SessionParts parts_;
  SessionListener& listener_;
  Answer<Done> opened_;
  std::shared_ptr<LeaseView> lease_;
  bool ready_ = false;
  bool ended_ = false;
  bool closing_ = false;
  std::string version_;
  Lifetime lifetime_;
  Retries retries_;
  Link link_;
  Leases leases_;
  Watches watches_;
  LockSequencer sequencer_;
  OwnTickets tickets_;
  const SessionContext context_{parts_, lifetime_, *parts_.link.loop, link_, retries_};
  StrayKeys stray_keys_;
  QueueReader reader_;
  OperatorCalls operator_calls_;
  KeyLoss key_loss_;
  KeyLife key_life_;
};

}  // namespace baton::etcd
