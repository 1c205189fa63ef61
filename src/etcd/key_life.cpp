#include "etcd/key_life.h"

#include "etcd/path.h"
#include "etcd/queue.h"

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace baton::etcd {

namespace {

void compare_created(etcdpb::TxnRequest& txn, const std::string& key, std::int64_t revision) {
  auto& compare = *txn.add_compare();
  compare.set_key(key);
  compare.set_target(etcdpb::Compare::CREATE);
  compare.set_result(etcdpb::Compare::EQUAL);
  compare.set_create_revision(revision);
}

// Puts the key and reads the newest keys of the lock. Idempotent: if it is sent again, it finds the
// key that it created.
etcdpb::TxnRequest join_txn(const std::string& prefix, const std::string& key,
                            const std::string& value, std::int64_t lease) {
  etcdpb::TxnRequest txn;
  compare_created(txn, key, 0);
  auto& put = *txn.add_success()->mutable_request_put();
  put.set_key(key);
  put.set_value(value);
  put.set_lease(lease);
  auto& found = *txn.add_failure()->mutable_request_range();
  found.set_key(key);
  found.set_keys_only(true);
  const auto newest = short_range(prefix, 0);
  *txn.add_success()->mutable_request_range() = newest;
  *txn.add_failure()->mutable_request_range() = newest;
  return txn;
}

// The key that the transaction found instead of creating it; null if it created the key, or if the
// response is malformed.
const etcdpb::KeyValue* key_found(const etcdpb::TxnResponse& body, const std::string& key) {
  if (body.succeeded() || body.responses_size() != 2) return nullptr;
  const auto& found = body.responses(0);
  if (!found.has_response_range() || found.response_range().kvs_size() != 1) return nullptr;
  const auto& kv = found.response_range().kvs(0);
  return kv.key() == key ? &kv : nullptr;
}

// Whether the key that the first transaction found is not the ticket's own. If the ticket was
// withdrawn and the key is under our lease, it counts as its own, so that it is removed before the
// withdrawal is answered: something between client and server may have repeated the transaction.
bool needs_other_key(const OwnTicket& ticket, const etcdpb::KeyValue& found) {
  if (!is_first_join(ticket.state())) return false;
  return found.lease() != ticket.lease || !is_withdrawn(ticket.state());
}

}  // namespace

KeyLife::KeyLife(const SessionContext& context, OwnTickets& tickets, LockSequencer& sequencer,
                 Leases& leases, Watches& watches, QueueReader& reader, StrayKeys& stray_keys,
                 LeaseGone lease_gone)
    : context_(context),
      tickets_(tickets),
      sequencer_(sequencer),
      leases_(leases),
      watches_(watches),
      reader_(reader),
      stray_keys_(stray_keys),
      lease_gone_(std::move(lease_gone)) {}

// ---- joining

void KeyLife::join(const LockName& name, Nonce nonce, Answer<Standing> answer) {
  if (const auto known = tickets_.find(nonce)) {
    if (is_present(known->state())) {
      reader_.look(nonce, {}, std::move(answer));
    } else {
      enter(known, std::move(answer));
    }
    return;
  }
  const auto ticket = std::make_shared<OwnTicket>(name, nonce, context_.prefix(name));
  tickets_.add(ticket);
  enter(ticket, std::move(answer));
}

// Sends joins in the order of the calls; see LockSequencer.
void KeyLife::enter(const OwnTicketPtr& ticket, Answer<Standing> answer) {
  sequencer_.join(ticket->prefix, [this, ticket, answer = std::move(answer)](
                                      std::optional<LockSequencer::Turn> turn) mutable {
    if (turn && may_send(ticket->state())) {
      send_join(ticket, *std::move(turn), std::move(answer));
      return;
    }
    if (!turn) tickets_.apply(ticket, TicketEvent::turn_rejected);
    // Withdrawn before its turn, or the store cannot be reached.
    context_.loop.defer(context_.lifetime.guard(
        [this, ticket, turn = std::move(turn), answer = std::move(answer)]() mutable {
          if (turn) turn->end(true);
          answer(Error(
              turn ? Errc::cancelled : Errc::connection_failed,
              "join " + ticket->prefix + ": " + (turn ? "cancelled" : context_.link.trouble())));
        }));
  });
}

void KeyLife::send_join(const OwnTicketPtr& ticket, LockSequencer::Turn turn,
                        Answer<Standing> answer) {
  if (ticket->lease == 0) {
    leases_.reserve_slot(
        context_.lifetime.guard([this, ticket, turn = std::move(turn),
                                 answer = std::move(answer)](Result<std::int64_t> lease) mutable {
          if (lease && may_send(ticket->state())) {
            tickets_.give_key(ticket, *lease);
            send_join(ticket, std::move(turn), std::move(answer));
            return;
          }
          tickets_.apply(ticket, TicketEvent::lease_failed);
          const auto error = lease
                                 ? Error(Errc::cancelled, "join " + ticket->prefix + ": cancelled")
                                 : lease.error();
          context_.loop.defer(context_.lifetime.guard(
              [error, turn = std::move(turn), answer = std::move(answer)]() mutable {
                turn.end(!transient(error));
                answer(error);
              }));
        }));
    return;
  }
  tickets_.apply(ticket, TicketEvent::sent);
  const auto txn =
      join_txn(ticket->prefix, ticket->key,
               encode_value(context_.parts.label, std::chrono::system_clock::now()), ticket->lease);
  RequestOptions how;
  how.wanted = [ticket] { return !is_withdrawn(ticket->state()); };
  context_.link.ask<etcdpb::TxnResponse>(
      Call::txn, txn, how,
      context_.lifetime.guard([this, ticket, turn = std::move(turn), answer = std::move(answer)](
                                  Reply<etcdpb::TxnResponse>& reply) mutable {
        // The failure of a withdrawn join says nothing about the joins behind it.
        const bool served = !is_transient(reply.status) || is_withdrawn(ticket->state());
        const auto* found = reply.ok() ? key_found(reply.body, ticket->key) : nullptr;
        if (found != nullptr && needs_other_key(*ticket, *found)) {
          take_other_key(ticket, *found, std::move(turn), std::move(answer));
          return;
        }
        if (reply.ok()) {
          entered(ticket, reply, std::move(answer));
        } else {
          not_entered(ticket, reply, std::move(answer));
        }
        turn.end(served);  // after the answer; does nothing if the session has ended
      }));
}

void KeyLife::entered(const OwnTicketPtr& ticket, Reply<etcdpb::TxnResponse>& reply,
                      Answer<Standing> answer) {
  const auto& body = reply.body;
  const bool well_formed = body.responses_size() == 2 && body.responses(1).has_response_range() &&
                           (body.succeeded() || key_found(body, ticket->key) != nullptr);
  if (!well_formed) {
    tickets_.apply(ticket, TicketEvent::join_lost);
    flush_withdrawals(ticket);
    answer(Error(Errc::store_error,
                 "join " + ticket->prefix + ": the server's response is malformed"));
    return;
  }
  tickets_.apply(ticket, TicketEvent::joined);
  ticket->token = static_cast<std::uint64_t>(
      body.succeeded() ? body.header().revision()
                       : body.responses(0).response_range().kvs(0).create_revision());
  ticket->sign = std::make_shared<DeletionSign>();
  if (is_withdrawn(ticket->state())) {
    flush_withdrawals(ticket);
    answer(Error(Errc::cancelled, "join " + ticket->prefix + ": cancelled"));
    return;
  }
  reader_.deliver(ticket, body.responses(1).response_range(), body.header().revision(),
                  std::move(answer));
}

// The name of the ticket's key is taken, so the ticket takes another one. A key under our own lease
// is a stray key. It must not be adopted: its removal may be under way.
void KeyLife::take_other_key(const OwnTicketPtr& ticket, const etcdpb::KeyValue& found,
                             LockSequencer::Turn turn, Answer<Standing> answer) {
  if (found.lease() == ticket->lease) {
    stray_keys_.remove_stray(ticket->key, found.create_revision());
  }
  tickets_.key_taken(ticket);
  if (may_send(ticket->state())) {
    send_join(ticket, std::move(turn), std::move(answer));
    return;
  }
  flush_withdrawals(ticket);
  answer(Error(Errc::cancelled, "join " + ticket->prefix + ": cancelled"));
  turn.end(true);
}

void KeyLife::not_entered(const OwnTicketPtr& ticket, const Reply<etcdpb::TxnResponse>& reply,
                          Answer<Standing> answer) {
  const auto error = reply.error("join " + ticket->prefix);
  if (reply.status == Status::lease_gone) {
    lease_gone_(error.what());
    return;
  }
  tickets_.apply(ticket,
                 reply.status == Status::lost ? TicketEvent::join_lost : TicketEvent::join_refused);
  flush_withdrawals(ticket);
  answer(error);
}

// Executes the withdrawals that came while the transaction was under way.
void KeyLife::flush_withdrawals(const OwnTicketPtr& ticket) {
  for (auto& withdrawal : std::exchange(ticket->withdrawals, {})) {
    withdraw(ticket->nonce, std::move(withdrawal));
  }
}

// ---- leaving

void KeyLife::withdraw(Nonce nonce, Answer<WithdrawResult> answer) {
  const auto ticket = tickets_.find(nonce);
  if (ticket == nullptr) {
    context_.loop.defer(context_.lifetime.guard(
        [answer = std::move(answer)]() mutable { answer(WithdrawResult{}); }));
    return;
  }
  tickets_.apply(ticket, TicketEvent::withdraw);
  switch (ticket->state()) {
    case TicketState::gone:
      // No request was sent, and none will be.
      context_.loop.defer(context_.lifetime.guard(
          [answer = std::move(answer)]() mutable { answer(WithdrawResult{}); }));
      return;
    case TicketState::cancelling:
    case TicketState::cancelling_again:
      ticket->withdrawals.push_back(std::move(answer));  // the answer that is under way decides
      return;
    default:
      remove(ticket, std::move(answer));
  }
}

void KeyLife::remove(const OwnTicketPtr& ticket, Answer<WithdrawResult> answer) {
  etcdpb::TxnRequest txn;
  // Remove exactly this ticket. If the join is in doubt, its revision is not known, but no other
  // client uses this key, and this client does not use its name again (OwnTickets::apply).
  if (is_present(ticket->state())) {
    compare_created(txn, ticket->key, static_cast<std::int64_t>(ticket->token));
  }
  txn.add_success()->mutable_request_delete_range()->set_key(ticket->key);
  RequestOptions how;
  how.front = true;  // waiters need it
  context_.link.ask<etcdpb::TxnResponse>(
      Call::txn, txn, how,
      context_.lifetime.guard(
          [this, ticket, removal = sequencer_.removing(ticket->prefix),
           answer = std::move(answer)](Reply<etcdpb::TxnResponse>& reply) mutable {
            if (!reply.ok()) {
              ticket->removal_in_doubt |= reply.status == Status::lost;
              removal.end();
              answer(reply.error("remove " + ticket->key));
              return;
            }
            const bool found = reply.body.succeeded() && reply.body.responses_size() == 1 &&
                               reply.body.responses(0).response_delete_range().deleted() > 0;
            const auto revision = reply.body.header().revision();
            if (ticket->token != 0) {
              watches_.deleted(ticket->key, static_cast<std::int64_t>(ticket->token), revision,
                               reply.endpoint);
            }
            if (late_possible(ticket->state())) stray_keys_.abandon(*ticket, revision);
            tickets_.apply(ticket, TicketEvent::removed);
            removal.end();  // the next join may use the name of this key
            answer(WithdrawResult{found || ticket->removal_in_doubt || ticket->token == 0});
          }));
}

}  // namespace baton::etcd
