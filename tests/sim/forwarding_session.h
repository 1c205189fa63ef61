// A session that passes every call on to another session. Seeded bugs override some calls.
#pragma once

#include "common/seam/session.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::sim {

// Nonces for tickets that the engine does not know. The engine counts its own nonces from 1.
inline constexpr std::uint64_t kForeignNonces = 1ULL << 40U;

template <class Tickets>
auto own_ticket_in(Tickets& tickets, internal::Nonce own) {
  return std::find_if(tickets.begin(), tickets.end(),
                      [own](const auto& t) { return t.ours == own; });
}

class ForwardingSession : public internal::Session {
 public:
  template <class T>
  using Answer = internal::Answer<T>;
  using LockName = internal::LockName;
  using Nonce = internal::Nonce;
  using Standing = internal::Standing;
  using Ticket = internal::Ticket;
  using WatchId = internal::WatchId;

  explicit ForwardingSession(std::unique_ptr<internal::Session> inner) : inner_(std::move(inner)) {}

  void join(const LockName& name, Nonce nonce, Answer<Standing> answer) override {
    inner_->join(name, nonce, std::move(answer));
  }
  void look(const LockName& name, Nonce nonce, const internal::LookHint& hint,
            Answer<Standing> answer) override {
    inner_->look(name, nonce, hint, std::move(answer));
  }
  void peek(const LockName& name, Answer<bool> busy) override {
    inner_->peek(name, std::move(busy));
  }
  WatchId watch(const LockName& name, const Ticket& ticket, const internal::WatchFor& what,
                internal::WatchHandler handler) override {
    return inner_->watch(name, ticket, what, std::move(handler));
  }
  void unwatch(WatchId id) override { inner_->unwatch(id); }
  void withdraw(const LockName& name, Nonce nonce,
                Answer<internal::WithdrawResult> answer) override {
    inner_->withdraw(name, nonce, std::move(answer));
  }
  void verify(const LockName& name, Nonce nonce, Answer<bool> answer) override {
    inner_->wanted_until(take_wanted_until());
    inner_->verify(name, nonce, std::move(answer));
  }
  void inspect(const LockName& name, Answer<LockSnapshot> answer) override {
    inner_->wanted_until(take_wanted_until());
    inner_->inspect(name, std::move(answer));
  }
  void list(std::string_view prefix, Answer<std::vector<std::string>> answer) override {
    inner_->wanted_until(take_wanted_until());
    inner_->list(prefix, std::move(answer));
  }
  void evict(const LockName& name, std::string_view entry_id, Answer<bool> answer) override {
    inner_->wanted_until(take_wanted_until());
    inner_->evict(name, entry_id, std::move(answer));
  }
  void settle_token_base(std::uint64_t wanted, Answer<std::uint64_t> answer) override {
    inner_->settle_token_base(wanted, std::move(answer));
  }
  void close(Answer<internal::Done> answer) override { inner_->close(std::move(answer)); }
  std::shared_ptr<internal::LeaseView> lease() const override { return inner_->lease(); }
  SessionInfo info() const override { return inner_->info(); }
  std::chrono::milliseconds backstop() const override { return inner_->backstop(); }

 protected:
  internal::Session& inner() const { return *inner_; }

 private:
  const std::unique_ptr<internal::Session> inner_;
};

}  // namespace baton::sim
