// Session: one client's session at a memory Store. It reaches the store through a Transport.
#pragma once

#include "common/base/lifetime.h"
#include "common/seam/session.h"
#include "memory/store.h"
#include "memory/transport.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace baton::memory {

struct SessionParts {
  std::shared_ptr<Store> store;
  std::shared_ptr<Transport> transport;
  Loop* loop;
  const Clock* store_clock;  // the clock of the store; may run at another rate than the loop's
  std::string label;
  std::string endpoint;
  std::chrono::milliseconds timeout;
  bool remote = false;  // simulates another machine: evictions are seen only in messages
};

class Session final : public internal::Session {
 public:
  // Opens a session at the store and answers with it.
  static void open(const SessionParts& parts, SessionListener& listener,
                   Answer<std::unique_ptr<internal::Session>> answer);
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
  class Peer;
  Session(SessionParts parts, SessionListener& listener, SessionId id, std::shared_ptr<Peer> peer,
          Time sent);

  struct Question {
    std::shared_ptr<void> answer;  // an Answer<T>
    TimerId timer = TimerId::none;
  };
  template <class T, class F>
  void ask(Traffic kind, F at_store, Answer<T> answer);
  template <class T>
  void finish(std::uint64_t question, Result<T> result);
  void drop_questions();
  void beat();
  void beat_answered(Time sent, bool alive);
  void renew(Time sent, Time now);
  void over(const std::string& detail);
  void watch_fired(WatchId id);

  const SessionParts parts_;
  SessionListener& listener_;
  const SessionId id_;
  std::shared_ptr<Peer> peer_;
  std::shared_ptr<LeaseView> lease_;
  Lifetime lifetime_;  // ended: answers that still arrive are ignored
  bool ended_ = false;
  Time last_sent_{};
  TimerId beat_timer_ = TimerId::none;
  std::uint64_t next_question_ = 1;
  std::unordered_map<std::uint64_t, Question> questions_;
  std::uint64_t next_watch_ = 1;
  std::unordered_map<WatchId, WatchHandler> watches_;
};

}  // namespace baton::memory
