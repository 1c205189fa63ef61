// The seeded bugs in which a client mistakes a ticket for another one.
#include "bugs.h"
#include "forwarding_session.h"
#include "seeded_session.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace baton::sim {

namespace {

using internal::Answer;
using internal::LockName;
using internal::LookHint;
using internal::Nonce;
using internal::Standing;
using internal::Ticket;
using internal::WatchFor;
using internal::WatchHandler;
using internal::WatchId;
using internal::WithdrawResult;
using SessionPtr = std::unique_ptr<internal::Session>;

// The standing of the ticket `own`, whose entry is number `mine` of the queue. An entry's rank is
// its token, as on the memory store and on etcd.
Standing standing_in(const LockSnapshot& queue, std::size_t mine, Nonce own) {
  const auto& entries = queue.entries;
  Standing standing;
  standing.token = entries[mine].token;
  if (mine > 0) {
    const auto& before = entries[mine - 1];
    standing.view.tickets.push_back({before.token, before.id, std::nullopt});
    standing.view.omitted_ahead = mine - 1;
  }
  standing.view.tickets.push_back({entries[mine].token, entries[mine].id, own});
  return standing;
}

// The real session knows the tickets under other nonces than the engine.
class RenamedTickets : public ForwardingSession {
 public:
  using ForwardingSession::ForwardingSession;
  void join(const LockName& name, Nonce nonce, Answer<Standing> answer) override {
    rename_before_join(nonce);
    inner().join(name, renamed(nonce),
                 [this, nonce, answer = std::move(answer)](Result<Standing> standing) mutable {
                   if (!standing && internal::transient(standing.error())) join_lost(nonce);
                   answer(as_engine_knows(nonce, std::move(standing)));
                 });
  }
  void look(const LockName& name, Nonce nonce, const LookHint& hint,
            Answer<Standing> answer) override {
    inner().look(name, renamed(nonce), hint,
                 [this, nonce, answer = std::move(answer)](Result<Standing> standing) mutable {
                   answer(as_engine_knows(nonce, std::move(standing)));
                 });
  }
  WatchId watch(const LockName& name, const Ticket& ticket, const WatchFor& what,
                WatchHandler handler) override {
    Ticket watched = ticket;
    WatchFor why = what;
    if (watched.ours) watched.ours = renamed(*watched.ours);
    if (why.waiter) why.waiter = renamed(*why.waiter);
    return inner().watch(name, watched, why, std::move(handler));
  }
  void withdraw(const LockName& name, Nonce nonce, Answer<WithdrawResult> answer) override {
    inner().withdraw(name, renamed(nonce), std::move(answer));
  }
  void verify(const LockName& name, Nonce nonce, Answer<bool> answer) override {
    ForwardingSession::verify(name, renamed(nonce), std::move(answer));
  }

 private:
  virtual Nonce renamed(Nonce nonce) const = 0;
  virtual void join_lost(Nonce) {}
  virtual void rename_before_join(Nonce) {}

  Result<Standing> as_engine_knows(Nonce nonce, Result<Standing> standing) const {
    if (!standing) return standing;
    for (Ticket& ticket : standing->view.tickets) {
      const bool mine = ticket.ours == renamed(nonce);
      ticket.ours = mine ? std::optional(nonce) : std::nullopt;
    }
    return standing;
  }
};

class SharedNonce final : public RenamedTickets {
 public:
  using RenamedTickets::RenamedTickets;

 private:
  Nonce renamed(Nonce) const override { return Nonce{1}; }
};

class BlindRejoin final : public RenamedTickets {
 public:
  using RenamedTickets::RenamedTickets;

 private:
  Nonce renamed(Nonce nonce) const override {
    const auto found = names_.find(nonce);
    return found == names_.end() ? nonce : found->second;
  }
  void join_lost(Nonce nonce) override { lost_.insert(nonce); }
  void rename_before_join(Nonce nonce) override {
    if (lost_.erase(nonce) != 0) names_[nonce] = Nonce{next_name_++};
  }

  std::set<Nonce> lost_;  // joins whose answer was lost
  std::map<Nonce, Nonce> names_;
  std::uint64_t next_name_ = kForeignNonces;
};

// Answers a join with a ticket that the client's previous session left in the queue.
class AdoptOldTicket final : public ForwardingSession {
 public:
  AdoptOldTicket(SessionPtr inner, SeededNotes& notes)
      : ForwardingSession(std::move(inner)), notes_(notes) {}
  ~AdoptOldTicket() override {
    notes_.left_waiting.clear();
    for (const auto& [nonce, ticket] : waiting_) {
      if (!notes_.granted.contains(nonce)) notes_.left_waiting[ticket.first].insert(ticket.second);
    }
  }

  void join(const LockName& name, Nonce nonce, Answer<Standing> answer) override {
    const auto left = std::exchange(notes_.left_waiting[name], {});
    if (left.empty()) {
      inner().join(name, nonce, remembering(name, nonce, std::move(answer)));
      return;
    }
    inner().inspect(name, [this, name, nonce, left,
                           answer = std::move(answer)](const Result<LockSnapshot>& queue) mutable {
      const auto old = queue ? std::find_if(queue->entries.begin(), queue->entries.end(),
                                            [&](const Entry& e) { return left.contains(e.id); })
                             : std::vector<Entry>::const_iterator{};
      if (!queue || old == queue->entries.end()) {
        inner().join(name, nonce, remembering(name, nonce, std::move(answer)));
        return;
      }
      adopted_.emplace(nonce, old->id);
      answer_adopted(*queue, nonce, answer);
    });
  }
  void look(const LockName& name, Nonce nonce, const LookHint& hint,
            Answer<Standing> answer) override {
    if (!adopted_.contains(nonce)) {
      inner().look(name, nonce, hint, std::move(answer));
      return;
    }
    inner().inspect(
        name, [this, nonce, answer = std::move(answer)](const Result<LockSnapshot>& queue) mutable {
          if (!queue) {
            answer(queue.error());
          } else {
            answer_adopted(*queue, nonce, answer);
          }
        });
  }
  void withdraw(const LockName& name, Nonce nonce, Answer<WithdrawResult> answer) override {
    waiting_.erase(nonce);
    inner().withdraw(name, nonce, std::move(answer));
  }

 private:
  void answer_adopted(const LockSnapshot& queue, Nonce nonce, Answer<Standing>& answer) const {
    const auto& id = adopted_.at(nonce);
    for (std::size_t i = 0; i < queue.entries.size(); ++i) {
      if (queue.entries[i].id == id) return answer(standing_in(queue, i, nonce));
    }
    answer(Standing{});
  }
  Answer<Standing> remembering(const LockName& name, Nonce nonce, Answer<Standing> answer) {
    return [this, name, nonce, answer = std::move(answer)](Result<Standing> standing) mutable {
      if (standing) {
        const auto& tickets = standing->view.tickets;
        const auto mine = own_ticket_in(tickets, nonce);
        if (mine != tickets.end()) waiting_.insert_or_assign(nonce, std::pair(name, mine->id));
      }
      answer(std::move(standing));
    };
  }

  SeededNotes& notes_;
  std::map<Nonce, std::pair<LockName, std::string>> waiting_;
  std::map<Nonce, std::string> adopted_;  // entry ids
};

}  // namespace

SessionPtr with_seeded_ticket_bug(SessionPtr session, SeededNotes& notes) {
  if (seeded(Bug::shared_nonce)) return std::make_unique<SharedNonce>(std::move(session));
  if (seeded(Bug::blind_rejoin)) return std::make_unique<BlindRejoin>(std::move(session));
  if (seeded(Bug::adopt_old_ticket)) {
    return std::make_unique<AdoptOldTicket>(std::move(session), notes);
  }
  return session;
}

}  // namespace baton::sim
