#include "seeded_session.h"

#include "bugs.h"
#include "forwarding_session.h"

#include <chrono>
#include <functional>
#include <utility>

namespace baton::sim {

namespace {

using namespace std::chrono_literals;
using internal::Answer;
using internal::LockName;
using internal::LookHint;
using internal::Nonce;
using internal::Standing;
using internal::Ticket;
using internal::WatchEvent;
using internal::WatchFor;
using internal::WatchHandler;
using internal::WatchId;
using internal::WithdrawResult;
using SessionPtr = std::unique_ptr<internal::Session>;

// Changes the answers of join and look.
class ChangedStandings : public ForwardingSession {
 public:
  using ForwardingSession::ForwardingSession;
  void join(const LockName& name, Nonce nonce, Answer<Standing> answer) override {
    inner().join(name, nonce, changing(name, nonce, std::move(answer)));
  }
  void look(const LockName& name, Nonce nonce, const LookHint& hint,
            Answer<Standing> answer) override {
    inner().look(name, nonce, hint, changing(name, nonce, std::move(answer)));
  }

 private:
  virtual void change(const LockName& name, Nonce nonce, Standing& standing) = 0;
  Answer<Standing> changing(const LockName& name, Nonce nonce, Answer<Standing> answer) {
    return [this, name, nonce, answer = std::move(answer)](Result<Standing> standing) mutable {
      if (standing) change(name, nonce, *standing);
      answer(std::move(standing));
    };
  }
};

// ---- watches and looks

class NoBackstop final : public ForwardingSession {
 public:
  using ForwardingSession::ForwardingSession;
  std::chrono::milliseconds backstop() const override { return 24h * 365; }
};

class NoOwnWatch final : public ForwardingSession {
 public:
  using ForwardingSession::ForwardingSession;
  WatchId watch(const LockName& name, const Ticket& ticket, const WatchFor& what,
                WatchHandler handler) override {
    if (!what.waiter) return WatchId::none;  // a waiter or a holder watches its own ticket
    return inner().watch(name, ticket, what, std::move(handler));
  }
};

// Answers as if only the predecessor were ahead, and as if its watch had seen every event.
class GoneMeansHeld final : public ChangedStandings {
 public:
  using ChangedStandings::ChangedStandings;
  WatchId watch(const LockName& name, const Ticket& ticket, const WatchFor& what,
                WatchHandler handler) override {
    if (!what.waiter) return inner().watch(name, ticket, what, std::move(handler));
    return inner().watch(
        name, ticket, what,
        [handler = std::move(handler)](const WatchEvent&) mutable { handler(WatchEvent::gone); });
  }

 private:
  void change(const LockName&, Nonce, Standing& standing) override {
    if (standing.view.tickets.size() > 1) standing.view.omitted_ahead = 0;
  }
};

class NoOwnCheck final : public ChangedStandings {
 public:
  NoOwnCheck(SessionPtr inner, const SeededNotes& notes)
      : ChangedStandings(std::move(inner)), notes_(notes) {}

 private:
  void change(const LockName&, Nonce nonce, Standing& standing) override {
    auto& tickets = standing.view.tickets;
    if (const auto mine = own_ticket_in(tickets, nonce); mine != tickets.end()) {
      own_.insert_or_assign(nonce, *mine);
    } else if (const auto known = own_.find(nonce);
               known != own_.end() && tickets.empty() && !notes_.granted.contains(nonce)) {
      tickets.push_back(known->second);
    }
  }

  const SeededNotes& notes_;
  std::map<Nonce, Ticket> own_;
};

// ---- tickets that stay

class NoReleaseRetry final : public ForwardingSession {
 public:
  using ForwardingSession::ForwardingSession;
  void withdraw(const LockName& name, Nonce nonce, Answer<WithdrawResult> answer) override {
    inner().withdraw(name, nonce,
                     [answer = std::move(answer)](Result<WithdrawResult> result) mutable {
                       answer(result ? std::move(result) : WithdrawResult{});
                     });
  }
};

// Does not withdraw the tickets for which `stays` is true.
class TicketsStay final : public ForwardingSession {
 public:
  TicketsStay(SessionPtr inner, internal::Loop& loop, std::function<bool(Nonce)> stays)
      : ForwardingSession(std::move(inner)), loop_(loop), stays_(std::move(stays)) {}
  void withdraw(const LockName& name, Nonce nonce, Answer<WithdrawResult> answer) override {
    if (!stays_(nonce)) {
      inner().withdraw(name, nonce, std::move(answer));
    } else {
      loop_.defer([answer = std::move(answer)]() mutable { answer(WithdrawResult{}); });
    }
  }

 private:
  internal::Loop& loop_;
  const std::function<bool(Nonce)> stays_;
};

// After the withdraw of a join that was never answered, a ticket appears.
class LateJoinLands final : public ForwardingSession {
 public:
  using ForwardingSession::ForwardingSession;
  void join(const LockName& name, Nonce nonce, Answer<Standing> answer) override {
    unanswered_.insert(nonce);
    inner().join(name, nonce,
                 [this, nonce, answer = std::move(answer)](Result<Standing> standing) mutable {
                   if (standing || !internal::transient(standing.error())) unanswered_.erase(nonce);
                   answer(std::move(standing));
                 });
  }
  void withdraw(const LockName& name, Nonce nonce, Answer<WithdrawResult> answer) override {
    inner().withdraw(
        name, nonce,
        [this, name, nonce, answer = std::move(answer)](Result<WithdrawResult> result) mutable {
          if (result && unanswered_.erase(nonce) != 0) {
            inner().join(name, Nonce{next_late_++}, [](const Result<Standing>&) {});
          }
          answer(std::move(result));
        });
  }

 private:
  std::set<Nonce> unanswered_;
  std::uint64_t next_late_ = kForeignNonces;
};

// ---- tokens and leases

class TokenIsPosition final : public ChangedStandings {
 public:
  TokenIsPosition(SessionPtr inner, SimStore& store)
      : ChangedStandings(std::move(inner)), store_(store) {}

 private:
  void change(const LockName& name, Nonce, Standing& standing) override {
    standing.token = store_.token_by_position(name, standing.token);
  }
  SimStore& store_;
};

// A lease that has run out looks valid for another moment, in which the engine may grant.
class GrantWithoutLease final : public ForwardingSession {
 public:
  GrantWithoutLease(SessionPtr inner, const internal::Loop& loop)
      : ForwardingSession(std::move(inner)), loop_(loop) {}
  std::shared_ptr<internal::LeaseView> lease() const override {
    const auto real = inner().lease();
    if (real->ended() || loop_.now() < real->deadline()) return real;
    return std::make_shared<internal::LeaseView>(loop_.now(), loop_.now() + 1ms);
  }

 private:
  const internal::Loop& loop_;
};

}  // namespace

SessionPtr with_seeded_bug(SessionPtr session, internal::Loop& loop, SeededNotes& notes,
                           SimStore& store) {
  switch (active_bug) {
    case Bug::no_backstop:
      return std::make_unique<NoBackstop>(std::move(session));
    case Bug::no_own_watch:
      return std::make_unique<NoOwnWatch>(std::move(session));
    case Bug::gone_means_held:
      return std::make_unique<GoneMeansHeld>(std::move(session));
    case Bug::no_own_check:
      return std::make_unique<NoOwnCheck>(std::move(session), notes);
    case Bug::no_release_retry:
      return std::make_unique<NoReleaseRetry>(std::move(session));
    case Bug::cancel_leaves_ticket:
      return std::make_unique<TicketsStay>(std::move(session), loop, [&notes](Nonce nonce) {
        return !notes.granted.contains(nonce);
      });
    case Bug::lost_ticket_stays:
      return std::make_unique<TicketsStay>(
          std::move(session), loop, [&notes](Nonce nonce) { return notes.lost.contains(nonce); });
    case Bug::late_join_lands:
      return std::make_unique<LateJoinLands>(std::move(session));
    case Bug::token_is_position:
      return std::make_unique<TokenIsPosition>(std::move(session), store);
    case Bug::grant_without_lease:
      return std::make_unique<GrantWithoutLease>(std::move(session), loop);
    default:
      break;
  }
#ifdef BATON_WITH_ZK
  session = with_seeded_zk_bug(std::move(session), notes);
#endif
  return with_seeded_ticket_bug(std::move(session), notes);
}

}  // namespace baton::sim
