#include "zk/tickets.h"

#include "zk/standing.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace baton::zk {

namespace {
// If the directory is removed this often between two requests, another program removes it on
// purpose.
constexpr int kMostTries = 16;
}  // namespace

Tickets::Tickets(const SessionContext& context, Watches& watches, TicketsHost& host)
    : context_(context),
      watches_(watches),
      host_(host),
      reads_(make_lock_reads(*context.parts.loop, context.outbox)),
      permanent_parents_(context.parts.permanent_parents) {}

OwnTicketPtr Tickets::find(Nonce nonce) const {
  const auto known = tickets_.find(nonce);
  return known == tickets_.end() ? nullptr : known->second;
}

// Changes the state of the ticket, and forgets a ticket that is gone.
void Tickets::apply(const OwnTicketPtr& ticket, TicketEvent event) {
  ticket->on(event);
  if (ticket->state() != TicketState::gone) return;
  tickets_.erase(ticket->nonce);
  host_.tickets_used(!tickets_.empty());
}

// ---- joining

// One attempt to join. Create and list are sent together and answered in order.
struct Tickets::JoinTry {
  OwnTicketPtr ticket;
  int tries = 0;
  Answer<Standing> answer;
  Reply made;
};

void Tickets::join(const LockName& name, Nonce nonce, Answer<Standing> answer) {
  auto ticket = find(nonce);
  if (ticket == nullptr) {
    ticket =
        std::make_shared<OwnTicket>(name, nonce, format_entry_id(context_.parts.client_id, nonce));
    tickets_.emplace(nonce, ticket);
    host_.tickets_used(true);
    create(ticket, 0, std::move(answer));
    return;
  }
  if (is_present(ticket->state())) {
    look(name, nonce, std::move(answer));
    return;
  }
  search(ticket,
         [this, ticket, answer = std::move(answer)](const Result<std::string>& node) mutable {
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

void Tickets::create(const OwnTicketPtr& ticket, int tries, Answer<Standing> answer) {
  if (ticket->state() != TicketState::creating) {
    // Withdrawn meanwhile. Creating the node now would leave an orphan: withdraw has already
    // reported it gone, or is about to.
    answer(Error(Errc::cancelled, "join " + context_.directory(ticket->name) + ": cancelled"));
    return;
  }
  const auto attempt = std::make_shared<JoinTry>();
  attempt->ticket = ticket;
  attempt->tries = tries;
  attempt->answer = std::move(answer);
  Request request{Request::Kind::create_entry,
                  context_.path(ticket->name, entry_prefix(ticket->id)),
                  encode_label(context_.parts.label)};
  ticket->create_request = context_.outbox.ask(
      std::move(request),
      [attempt](Reply& reply, std::uint64_t) { attempt->made = std::move(reply); });
  reads_.read(context_.directory(ticket->name), Freshness::session,
              [this, attempt](const Listing& listing) { created(attempt, listing); });
}

void Tickets::created(const std::shared_ptr<JoinTry>& attempt, const Listing& listing) {
  const auto& ticket = attempt->ticket;
  const Reply& made = attempt->made;
  const std::string what = "join " + context_.directory(ticket->name);
  std::optional<Result<Standing>> outcome;
  if (ticket->state() == TicketState::gone) {  // withdrawn before the create was sent
    outcome = call_error(Status::failed, 0, what);
  } else if (made.status == Status::ok) {
    apply(ticket, TicketEvent::create_ok);
    ticket->node = made.path.substr(made.path.rfind('/') + 1);
    ticket->sequence = sequence_of(ticket->node).value_or(kLastSequence);
    ticket->token = made.created_at;
    outcome = standing_of(context_.parts.root, *ticket, listing);
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

void Tickets::make_parents(const OwnTicketPtr& ticket, int tries, Answer<Standing> answer) {
  const std::string where = context_.directory(ticket->name);
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
    context_.outbox.ask(
        {kind, levels[i], {}}, [this, ticket, tries, refused, last, where, kind,
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
            for (auto& withdrawal : std::exchange(ticket->withdrawals, {}))
              withdrawal(WithdrawResult{});
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

void Tickets::search(const OwnTicketPtr& ticket, Answer<std::string> answer) {
  // The session is the same, so every request of the old connection was committed or dropped before
  // this sync. A list without our node proves that the node does not exist and will not be created.
  reads_.read(context_.directory(ticket->name), Freshness::synced,
              [this, ticket, answer = std::move(answer)](const Listing& listing) mutable {
                if (listing.status != Status::ok && listing.status != Status::no_node) {
                  answer(call_error(listing.status, listing.code,
                                    "list " + context_.directory(ticket->name)));
                  return;
                }
                const std::string prefix = entry_prefix(ticket->id);
                const auto& entries = listing.queue.entries;
                const auto mine = std::find_if(
                    entries.begin(), entries.end(),
                    [&](const QueueEntry& entry) { return entry.name.starts_with(prefix); });
                answer(mine == entries.end() ? std::string() : mine->name);
              });
}

void Tickets::adopt(const OwnTicketPtr& ticket, const std::string& node, Answer<Standing> answer) {
  context_.outbox.ask(
      {Request::Kind::get, context_.path(ticket->name, node), {}},
      [this, ticket, node, answer = std::move(answer)](Reply& reply, std::uint64_t) mutable {
        if (reply.status == Status::ok && reply.owner == host_.session_number()) {
          apply(ticket, TicketEvent::rejoin_adopted);
          ticket->node = node;
          ticket->sequence = sequence_of(node).value_or(kLastSequence);
          ticket->token = reply.created_at;
          look(ticket->name, ticket->nonce, std::move(answer));
        } else if (reply.status == Status::ok || reply.status == Status::no_node) {
          // The node is gone, or belongs to an old session and is about to go.
          apply(ticket, TicketEvent::rejoin_absent);
          create(ticket, 0, std::move(answer));
        } else {
          answer(call_error(reply.status, reply.code, "read " + context_.path(ticket->name, node)));
        }
      });
}

// ---- looking

void Tickets::look(const LockName& name, Nonce nonce, Answer<Standing> answer) {
  const auto ticket = find(nonce);
  if (ticket == nullptr || !is_present(ticket->state())) {
    context_.parts.loop->defer([answer = std::move(answer)]() mutable { answer(Standing{}); });
    return;
  }
  // Our server may not have seen the changes yet that watches of other sessions have reported.
  const bool synced = host_.must_sync();
  reads_.read(context_.directory(name), synced ? Freshness::synced : Freshness::session,
              [this, ticket, synced, answer = std::move(answer)](const Listing& listing) mutable {
                auto where = standing_of(context_.parts.root, *ticket, listing);
                if (synced || !where || !where->view.tickets.empty()) {
                  answer(std::move(where));
                  return;
                }
                // Our ticket is not in the list, which would end a hold. Confirm it with a read
                // after a sync with the leader.
                reads_.read(
                    context_.directory(ticket->name), Freshness::synced,
                    [this, ticket, answer = std::move(answer)](const Listing& sure) mutable {
                      answer(standing_of(context_.parts.root, *ticket, sure));
                    });
              });
}

void Tickets::peek(const LockName& name, Answer<bool> busy) {
  reads_.read(
      context_.directory(name), Freshness::synced,
      [this, name, busy = std::move(busy)](const Listing& listing) mutable {
        if (listing.status == Status::ok || listing.status == Status::no_node) {
          busy(!listing.queue.entries.empty());
        } else {
          busy(call_error(listing.status, listing.code, "list " + context_.directory(name)));
        }
      });
}

// ---- leaving

void Tickets::withdraw(const LockName&, Nonce nonce, Answer<WithdrawResult> answer) {
  const auto ticket = find(nonce);
  if (ticket == nullptr) {
    context_.parts.loop->defer(
        [answer = std::move(answer)]() mutable { answer(WithdrawResult{}); });
    return;
  }
  if (ticket->state() == TicketState::creating && context_.outbox.recall(ticket->create_request)) {
    apply(ticket, TicketEvent::withdraw_unsent);
    context_.parts.loop->defer(
        [answer = std::move(answer)]() mutable { answer(WithdrawResult{}); });
    return;
  }
  apply(ticket, TicketEvent::withdraw);
  switch (ticket->state()) {
    case TicketState::removing:
      remove(ticket, std::move(answer));
      return;
    case TicketState::searching:
      search(ticket,
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

void Tickets::remove(const OwnTicketPtr& ticket, Answer<WithdrawResult> answer) {
  const std::string node = context_.path(ticket->name, ticket->node);
  watches_.going(node);
  context_.outbox.ask(
      {Request::Kind::remove, node, {}},
      [this, ticket, node, answer = std::move(answer)](Reply& reply, std::uint64_t) mutable {
        if (reply.status == Status::ok || reply.status == Status::no_node) {
          apply(ticket, TicketEvent::removed);
          answer(WithdrawResult{reply.status == Status::ok || ticket->removal_in_doubt});
        } else {
          ticket->removal_in_doubt |= reply.status == Status::lost;
          answer(call_error(reply.status, reply.code, "remove " + node));
        }
      });
}

}  // namespace baton::zk
