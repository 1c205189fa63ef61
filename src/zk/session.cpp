// Session: joins queues, looks at them, and withdraws tickets. session_lifecycle.cpp has the
// transport and the lease.
#include "zk/session.h"

#include "common/base/mutant.h"
#include "zk/standing.h"

#include <algorithm>
#include <utility>

namespace baton::zk {

namespace {
// If the directory is removed this often between two requests, another program removes it on
// purpose.
constexpr int kMostTries = 16;
}  // namespace

std::string Session::directory(const LockName& name) const { return context_.directory(name); }

std::string Session::path(const LockName& name, std::string_view node) const {
  return context_.path(name, node);
}

// Changes the state of the ticket, and forgets a ticket that is gone.
void Session::apply(const OwnTicketPtr& ticket, TicketEvent event) {
  ticket->on(event);
  if (ticket->state() != TicketState::gone) return;
  tickets_.erase(ticket->nonce);
  if (heartbeat_ != nullptr) heartbeat_->set_active(!tickets_.empty());
}

// ---- joining

// One attempt to join. Create and list are sent together and answered in order.
struct Session::JoinTry {
  OwnTicketPtr ticket;
  int tries = 0;
  Answer<Standing> answer;
  Reply made;
};

void Session::join(const LockName& name, Nonce nonce, Answer<Standing> answer) {
  const auto known = tickets_.find(nonce);
  if (known == tickets_.end()) {
    auto ticket =
        std::make_shared<OwnTicket>(name, nonce, format_entry_id(parts_.client_id, nonce));
    tickets_.emplace(nonce, ticket);
    heartbeat_->set_active(true);
    create(ticket, 0, std::move(answer));
    return;
  }
  const auto ticket = known->second;
  if (is_present(ticket->state())) {
    look(name, nonce, {}, std::move(answer));
    return;
  }
  find(ticket, [this, ticket, answer = std::move(answer)](const Result<std::string>& node) mutable {
    if (!node) {
      answer(node.error());
    } else if (node->empty()) {
      apply(ticket, TicketEvent::rejoin_absent);
      create(ticket, 0, std::move(answer));
    } else {
      adopt(ticket, *node, std::move(answer));
    }
  });
}

void Session::create(const OwnTicketPtr& ticket, int tries, Answer<Standing> answer) {
  if (ticket->state() != TicketState::creating) {
    // Withdrawn meanwhile. Creating the node now would leave an orphan: withdraw has already
    // reported it gone, or is about to.
    answer(Error(Errc::cancelled, "join " + directory(ticket->name) + ": cancelled"));
    return;
  }
  const auto attempt = std::make_shared<JoinTry>();
  attempt->ticket = ticket;
  attempt->tries = tries;
  attempt->answer = std::move(answer);
  Request request{Request::Kind::create_entry, path(ticket->name, entry_prefix(ticket->id)),
                  encode_label(parts_.label)};
  ticket->create_request = outbox_.ask(std::move(request), [attempt](Reply& reply, std::uint64_t) {
    attempt->made = std::move(reply);
  });
  lister_.read(directory(ticket->name), ReadCoalescer::Freshness::session,
               [this, attempt](const Listing& listing) { created(attempt, listing); });
}

void Session::created(const std::shared_ptr<JoinTry>& attempt, const Listing& listing) {
  const auto& ticket = attempt->ticket;
  const Reply& made = attempt->made;
  const std::string what = "join " + directory(ticket->name);
  std::optional<Result<Standing>> outcome;
  if (ticket->state() == TicketState::gone) {  // withdrawn before the create was sent
    outcome = call_error(Status::failed, 0, what);
  } else if (made.status == Status::ok) {
    apply(ticket, TicketEvent::create_ok);
    ticket->node = made.path.substr(made.path.rfind('/') + 1);
    ticket->sequence = sequence_of(ticket->node).value_or(kLastSequence);
    ticket->token = made.created_at;
    outcome = standing_of(parts_.root, *ticket, listing);
  } else if (made.status == Status::lost) {
    apply(ticket, TicketEvent::create_lost);
    outcome = call_error(made.status, made.code, what);
  } else {
    apply(ticket, made.status == Status::no_node ? TicketEvent::create_no_parent
                                                 : TicketEvent::create_refused);
    if (ticket->state() == TicketState::making_parents) {
      make_parents(ticket, attempt->tries, std::move(attempt->answer));
      return;
    }
    outcome = call_error(made.status, made.code, what);
  }
  for (auto& withdrawal : std::exchange(ticket->withdrawals, {})) {
    withdraw(ticket->name, ticket->nonce, std::move(withdrawal));
  }
  attempt->answer(*std::move(outcome));
}

void Session::make_parents(const OwnTicketPtr& ticket, int tries, Answer<Standing> answer) {
  const std::string where = directory(ticket->name);
  if (tries >= kMostTries) {
    apply(ticket, TicketEvent::parents_failed);
    answer(
        Error(Errc::store_error,
              "join " + where +
                  ": the directory is removed each time it is created; find out what removes it"));
    return;
  }
  const auto kind =
      permanent_parents_ ? Request::Kind::create_permanent : Request::Kind::create_container;
  // Keeps the last refusal of any level; a level that already exists is fine. The client may have
  // no permission for the upper levels, so a refusal counts only if the last level does not exist.
  auto refused = std::make_shared<std::optional<Reply>>();
  const auto levels = ancestors_of(where);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const bool last = i + 1 == levels.size();
    outbox_.ask({kind, levels[i], {}}, [this, ticket, tries, refused, last, where, kind,
                                        answer = last ? std::exchange(answer, nullptr) : nullptr](
                                           Reply& reply, std::uint64_t) mutable {
      const bool there = reply.status == Status::ok || reply.status == Status::node_exists;
      if (!there && reply.status != Status::no_node) *refused = reply;
      if (!last) return;
      const bool no_containers = !there && *refused &&
                                 (*refused)->status == Status::unimplemented &&
                                 kind == Request::Kind::create_container;
      const bool failed = !there && *refused && !no_containers;
      const bool cancelled = ticket->state() == TicketState::cancelling_parents;
      // If it failed or was cancelled, no entry was created and none will be.
      apply(ticket, failed ? TicketEvent::parents_failed : TicketEvent::parents_made);
      if (cancelled) {
        for (auto& withdrawal : std::exchange(ticket->withdrawals, {})) {
          withdrawal(WithdrawResult{});
        }
        answer(Error(Errc::cancelled, "join " + where + ": cancelled"));
      } else if (failed) {
        answer(call_error((*refused)->status, (*refused)->code, "make " + where));
      } else {
        if (no_containers) permanent_parents_ = true;
        create(ticket, tries + 1, std::move(answer));
      }
    });
  }
}

// ---- finding the node of a create whose answer was lost

void Session::find(const OwnTicketPtr& ticket, Answer<std::string> answer) {
  // The session is the same, so every request of the old connection was committed or dropped before
  // this sync. A list without our node proves that the node does not exist and will not be created.
  const auto freshness = mutant(Mutant::find_without_sync) ? ReadCoalescer::Freshness::session
                                                           : ReadCoalescer::Freshness::synced;
  lister_.read(
      directory(ticket->name), freshness,
      [this, ticket, answer = std::move(answer)](const Listing& listing) mutable {
        if (listing.status != Status::ok && listing.status != Status::no_node) {
          answer(call_error(listing.status, listing.code, "list " + directory(ticket->name)));
          return;
        }
        const std::string prefix = entry_prefix(ticket->id);
        const auto& entries = listing.queue.entries;
        const auto mine =
            std::find_if(entries.begin(), entries.end(),
                         [&](const QueueEntry& entry) { return entry.name.starts_with(prefix); });
        answer(mine == entries.end() ? std::string() : mine->name);
      });
}

void Session::adopt(const OwnTicketPtr& ticket, const std::string& node, Answer<Standing> answer) {
  outbox_.ask(
      {Request::Kind::get, path(ticket->name, node), {}},
      [this, ticket, node, answer = std::move(answer)](Reply& reply, std::uint64_t) mutable {
        if (reply.status == Status::ok && reply.owner == connection_.session) {
          apply(ticket, TicketEvent::rejoin_adopted);
          ticket->node = node;
          ticket->sequence = sequence_of(node).value_or(kLastSequence);
          ticket->token = reply.created_at;
          look(ticket->name, ticket->nonce, {}, std::move(answer));
        } else if (reply.status == Status::ok || reply.status == Status::no_node) {
          // The node is gone, or belongs to an old session and is about to go.
          apply(ticket, TicketEvent::rejoin_absent);
          create(ticket, 0, std::move(answer));
        } else {
          answer(call_error(reply.status, reply.code, "read " + path(ticket->name, node)));
        }
      });
}

// ---- looking

void Session::look(const LockName& name, Nonce nonce, const LookHint&, Answer<Standing> answer) {
  const auto known = tickets_.find(nonce);
  if (known == tickets_.end() || !is_present(known->second->state())) {
    parts_.loop->defer([answer = std::move(answer)]() mutable { answer(Standing{}); });
    return;
  }
  // Our server may not have seen the changes yet that watches of other sessions have reported.
  const bool synced = watch_sessions_.any();
  const auto ticket = known->second;
  lister_.read(directory(name),
               synced ? ReadCoalescer::Freshness::synced : ReadCoalescer::Freshness::session,
               [this, ticket, synced, answer = std::move(answer)](const Listing& listing) mutable {
                 auto where = standing_of(parts_.root, *ticket, listing);
                 if (synced || !where || !where->view.tickets.empty()) {
                   answer(std::move(where));
                   return;
                 }
                 // Our ticket is not in the list, which would end a hold. Confirm it with a read
                 // after a sync with the leader.
                 lister_.read(
                     directory(ticket->name), ReadCoalescer::Freshness::synced,
                     [this, ticket, answer = std::move(answer)](const Listing& sure) mutable {
                       answer(standing_of(parts_.root, *ticket, sure));
                     });
               });
}

void Session::peek(const LockName& name, Answer<bool> busy) {
  lister_.read(directory(name), ReadCoalescer::Freshness::synced,
               [this, name, busy = std::move(busy)](const Listing& listing) mutable {
                 if (listing.status == Status::ok || listing.status == Status::no_node) {
                   busy(!listing.queue.entries.empty());
                 } else {
                   busy(call_error(listing.status, listing.code, "list " + directory(name)));
                 }
               });
}

// ---- leaving

void Session::withdraw(const LockName&, Nonce nonce, Answer<WithdrawResult> answer) {
  const auto known = tickets_.find(nonce);
  if (known == tickets_.end()) {
    parts_.loop->defer([answer = std::move(answer)]() mutable { answer(WithdrawResult{}); });
    return;
  }
  const auto ticket = known->second;
  if (ticket->state() == TicketState::creating && outbox_.recall(ticket->create_request)) {
    apply(ticket, TicketEvent::withdraw_unsent);
    parts_.loop->defer([answer = std::move(answer)]() mutable { answer(WithdrawResult{}); });
    return;
  }
  apply(ticket, TicketEvent::withdraw);
  switch (ticket->state()) {
    case TicketState::removing:
      remove(ticket, std::move(answer));
      return;
    case TicketState::searching:
      find(ticket,
           [this, ticket, answer = std::move(answer)](const Result<std::string>& node) mutable {
             if (!node) {
               answer(node.error());
             } else if (node->empty()) {
               apply(ticket, TicketEvent::withdraw_absent);
               answer(WithdrawResult{});
             } else {
               ticket->node = *node;
               remove(ticket, std::move(answer));
             }
           });
      return;
    default:  // cancelling: the answer that is under way decides
      ticket->withdrawals.push_back(std::move(answer));
  }
}

void Session::remove(const OwnTicketPtr& ticket, Answer<WithdrawResult> answer) {
  const std::string node = path(ticket->name, ticket->node);
  watches_.going(node);
  outbox_.ask({Request::Kind::remove, node, {}}, [this, ticket, node, answer = std::move(answer)](
                                                     Reply& reply, std::uint64_t) mutable {
    if (reply.status == Status::ok || reply.status == Status::no_node) {
      apply(ticket, TicketEvent::removed);
      answer(WithdrawResult{reply.status == Status::ok || ticket->removal_in_doubt});
    } else {
      ticket->removal_in_doubt |= reply.status == Status::lost;
      answer(call_error(reply.status, reply.code, "remove " + node));
    }
  });
}

// ---- watches

WatchId Session::watch(const LockName& name, const Ticket& ticket, const WatchFor& what,
                       WatchHandler handler) {
  std::optional<std::string> mine;
  if (what.waiter) {
    if (const auto own = tickets_.find(*what.waiter); own != tickets_.end()) {
      mine = path(name, own->second->node);
    }
  }
  return watches_.watch(path(name, ticket.id), std::move(mine), what.soon, std::move(handler));
}

void Session::unwatch(WatchId id) { watches_.unwatch(id); }

// ---- questions

void Session::verify(const LockName&, Nonce nonce, Answer<bool> answer) {
  const Time until = take_wanted_until();
  const auto known = tickets_.find(nonce);
  if (known == tickets_.end() || !is_present(known->second->state())) {
    parts_.loop->defer([answer = std::move(answer)]() mutable { answer(false); });
    return;
  }
  operator_calls_.verify(known->second, until, std::move(answer));
}

void Session::inspect(const LockName& name, Answer<LockSnapshot> answer) {
  operator_calls_.inspect(name, take_wanted_until(), std::move(answer));
}

void Session::list(std::string_view prefix, Answer<std::vector<std::string>> answer) {
  lock_list_.list(prefix, take_wanted_until(), std::move(answer));
}

void Session::evict(const LockName& name, std::string_view entry_id, Answer<bool> answer) {
  operator_calls_.evict(name, entry_id, take_wanted_until(), std::move(answer));
}

void Session::settle_token_base(std::uint64_t wanted, Answer<std::uint64_t> answer) {
  token_base_.settle(wanted, std::move(answer));
}

}  // namespace baton::zk
