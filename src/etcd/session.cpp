// Session: joins queues, looks at them, and withdraws tickets. session_watch.cpp has the watches,
// session_lifecycle.cpp the lease and the end.
#include "etcd/session.h"

#include "etcd/path.h"
#include "etcd/queue.h"

#include <algorithm>
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

}  // namespace

// ---- joining

void Session::join(const LockName& name, Nonce nonce, Answer<Standing> answer) {
  if (const auto known = tickets_.find(nonce)) {
    if (is_present(known->state())) {
      look(name, nonce, {}, std::move(answer));
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
void Session::enter(const OwnTicketPtr& ticket, Answer<Standing> answer) {
  sequencer_.join(ticket->prefix, [this, ticket, answer = std::move(answer)](
                                      std::optional<LockSequencer::Turn> turn) mutable {
    if (turn && may_send(ticket->state())) {
      send_join(ticket, *std::move(turn), std::move(answer));
      return;
    }
    if (!turn) tickets_.apply(ticket, TicketEvent::turn_rejected);
    // Withdrawn before its turn, or the store cannot be reached.
    loop().defer(lifetime_.guard(
        [this, ticket, turn = std::move(turn), answer = std::move(answer)]() mutable {
          if (turn) turn->end(true);
          answer(Error(turn ? Errc::cancelled : Errc::connection_failed,
                       "join " + ticket->prefix + ": " + (turn ? "cancelled" : link_.trouble())));
        }));
  });
}

void Session::send_join(const OwnTicketPtr& ticket, LockSequencer::Turn turn,
                        Answer<Standing> answer) {
  if (ticket->lease == 0) {
    leases_.reserve_slot(lifetime_.guard([this, ticket, turn = std::move(turn),
                                       answer =
                                           std::move(answer)](Result<std::int64_t> lease) mutable {
      if (lease && may_send(ticket->state())) {
        ticket->lease = *lease;
        ticket->key = entry_key(ticket->prefix, *lease, ticket->nonce);
        leases_.key_added(*lease);
        send_join(ticket, std::move(turn), std::move(answer));
        return;
      }
      tickets_.apply(ticket, TicketEvent::lease_failed);
      const auto error =
          lease ? Error(Errc::cancelled, "join " + ticket->prefix + ": cancelled") : lease.error();
      loop().defer(
          lifetime_.guard([error, turn = std::move(turn), answer = std::move(answer)]() mutable {
            turn.end(!transient(error));
            answer(error);
          }));
    }));
    return;
  }
  tickets_.apply(ticket, TicketEvent::sent);
  const auto txn =
      join_txn(ticket->prefix, ticket->key,
               encode_value(parts_.label, std::chrono::system_clock::now()), ticket->lease);
  RequestOptions how;
  how.wanted = [ticket] { return !is_withdrawn(ticket->state()); };
  link_.ask<etcdpb::TxnResponse>(
      Call::txn, txn, how,
      lifetime_.guard([this, ticket, turn = std::move(turn),
                       answer = std::move(answer)](Reply<etcdpb::TxnResponse>& reply) mutable {
        // The failure of a withdrawn join says nothing about the joins behind it.
        const bool served = !is_transient(reply.status) || is_withdrawn(ticket->state());
        if (reply.ok()) {
          entered(ticket, reply, std::move(answer));
        } else {
          not_entered(ticket, reply, std::move(answer));
        }
        turn.end(served);  // after the answer; does nothing if the session has ended
      }));
}

void Session::entered(const OwnTicketPtr& ticket, Reply<etcdpb::TxnResponse>& reply,
                      Answer<Standing> answer) {
  const auto& body = reply.body;
  const bool well_formed =
      body.responses_size() == 2 && body.responses(1).has_response_range() &&
      (body.succeeded() || (body.responses(0).has_response_range() &&
                            body.responses(0).response_range().kvs_size() == 1));
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
  deliver(ticket, body.responses(1).response_range(), body.header().revision(), std::move(answer));
}

void Session::not_entered(const OwnTicketPtr& ticket, const Reply<etcdpb::TxnResponse>& reply,
                          Answer<Standing> answer) {
  const auto error = reply.error("join " + ticket->prefix);
  if (reply.status == Status::lease_gone) {
    end_session(Errc::session_expired, error.what());
    return;
  }
  tickets_.apply(ticket,
                 reply.status == Status::lost ? TicketEvent::join_lost : TicketEvent::join_refused);
  flush_withdrawals(ticket);
  answer(error);
}

// Executes the withdrawals that came while the transaction was under way.
void Session::flush_withdrawals(const OwnTicketPtr& ticket) {
  for (auto& withdrawal : std::exchange(ticket->withdrawals, {})) {
    withdraw(ticket->name, ticket->nonce, std::move(withdrawal));
  }
}

// ---- looking

void Session::deliver(const OwnTicketPtr& ticket, const etcdpb::RangeResponse& reading,
                      std::int64_t revision, Answer<Standing> answer) {
  auto result = read_queue(ticket->prefix, ticket->key, ticket->token, ticket->nonce, reading);
  if (result.incomplete) {
    look_at_all(ticket, 0, std::move(answer));
    return;
  }
  // This read is older than the deletion of our key, which its watch has already reported: another
  // client may hold the lock now. Read again, once for each deletion. The second result counts.
  if (revision < ticket->gone_at &&
      std::exchange(ticket->doubted_at, ticket->gone_at) != ticket->gone_at) {
    look_at_all(ticket, static_cast<std::int64_t>(ticket->token), std::move(answer));
    return;
  }
  ticket->seen = std::max(ticket->seen, revision);
  ticket->told = revision;
  result.standing.sign = ticket->sign;
  answer(std::move(result.standing));
}

void Session::look(const LockName&, Nonce nonce, const LookHint& hint, Answer<Standing> answer) {
  const auto ticket = tickets_.find(nonce);
  if (ticket == nullptr || !is_present(ticket->state())) {
    loop().defer(lifetime_.guard([answer = std::move(answer)]() mutable { answer(Standing{}); }));
    return;
  }
  // Use only a hint that is newer than every delivered read. A read at an older revision could show
  // a predecessor that is already gone, and a watch of its key would start after the deletion and
  // never fire. If our own key was deleted since, only the cluster can tell.
  if (hint.revision > std::max(ticket->seen, ticket->gone_at)) {
    look_pinned(ticket, hint, std::move(answer));
  } else {
    look_at_all(ticket, static_cast<std::int64_t>(ticket->token), std::move(answer));
  }
}

void Session::look_at_all(const OwnTicketPtr& ticket, std::int64_t newest,
                          Answer<Standing> answer) {
  lister_.read(
      ticket->prefix, newest,
      [this, ticket, answer = std::move(answer)](Reply<etcdpb::RangeResponse>& reply) mutable {
        if (reply.ok()) {
          deliver(ticket, reply.body, reply.body.header().revision(), std::move(answer));
        } else {
          answer(reply.error("look at " + ticket->prefix));
        }
      });
}

// Reads from the member that reported the change, at the revision of the change, without the other
// members. This is safe: the read shows a true state of the past, entries ahead never come back,
// and the watch of our own key reports its deletion.
void Session::look_pinned(const OwnTicketPtr& ticket, const LookHint& hint,
                          Answer<Standing> answer) {
  auto request = short_range(ticket->prefix, static_cast<std::int64_t>(ticket->token));
  request.set_revision(hint.revision);
  request.set_serializable(true);
  RequestOptions how;
  how.endpoint = hint.server;
  how.linearizable = false;
  how.timeout = kPinnedPatience;
  link_.ask<etcdpb::RangeResponse>(
      Call::range, request, how,
      lifetime_.guard([this, ticket, revision = hint.revision,
                       answer = std::move(answer)](Reply<etcdpb::RangeResponse>& reply) mutable {
        if (reply.ok()) {
          deliver(ticket, reply.body, revision, std::move(answer));
        } else {
          // The member has not reached the revision yet, has compacted it, or cannot be reached.
          look_at_all(ticket, static_cast<std::int64_t>(ticket->token), std::move(answer));
        }
      }));
}

void Session::peek(const LockName& name, Answer<bool> busy) {
  const std::string where = context_.prefix(name);
  sequencer_.peek(where, [this, where, busy = std::move(busy)](bool go) mutable {
    if (go) {
      peek_now(where, std::move(busy));
      return;
    }
    loop().defer(lifetime_.guard([text = link_.trouble(), where, busy = std::move(busy)]() mutable {
      busy(Error(Errc::connection_failed, "look at " + where + ": " + text));
    }));
  });
}

void Session::peek_now(const std::string& where, Answer<bool> busy) {
  auto request = full_range(where);
  request.set_limit(kShortReading);
  link_.ask<etcdpb::RangeResponse>(
      Call::range, request, {},
      lifetime_.guard([this, where,
                       busy = std::move(busy)](Reply<etcdpb::RangeResponse>& reply) mutable {
        if (!reply.ok()) {
          busy(reply.error("look at " + where));
          return;
        }
        for (const auto& kv : reply.body.kvs()) {
          if (is_direct_entry(where, kv.key())) {
            busy(true);
            return;
          }
        }
        if (!reply.body.more()) {
          busy(false);
          return;
        }
        // So far the read shows only entries of locks below this one.
        lister_.read(where, 0,
                     [where, busy = std::move(busy)](Reply<etcdpb::RangeResponse>& all) mutable {
                       if (!all.ok()) {
                         busy(all.error("look at " + where));
                         return;
                       }
                       bool any = false;
                       for (const auto& kv : all.body.kvs())
                         any |= is_direct_entry(where, kv.key());
                       busy(any);
                     });
      }));
}

// ---- leaving

void Session::withdraw(const LockName&, Nonce nonce, Answer<WithdrawResult> answer) {
  const auto ticket = tickets_.find(nonce);
  if (ticket == nullptr) {
    loop().defer(
        lifetime_.guard([answer = std::move(answer)]() mutable { answer(WithdrawResult{}); }));
    return;
  }
  tickets_.apply(ticket, TicketEvent::withdraw);
  switch (ticket->state()) {
    case TicketState::gone:
      // No request was sent, and none will be.
      loop().defer(
        lifetime_.guard([answer = std::move(answer)]() mutable { answer(WithdrawResult{}); }));
      return;
    case TicketState::cancelling:
    case TicketState::cancelling_again:
      ticket->withdrawals.push_back(std::move(answer));  // the answer that is under way decides
      return;
    default:
      remove(ticket, std::move(answer));
  }
}

void Session::remove(const OwnTicketPtr& ticket, Answer<WithdrawResult> answer) {
  etcdpb::TxnRequest txn;
  // Remove exactly this ticket. If the join is in doubt, its revision is not known, but no other
  // client uses this key.
  if (is_present(ticket->state())) {
    compare_created(txn, ticket->key, static_cast<std::int64_t>(ticket->token));
  }
  txn.add_success()->mutable_request_delete_range()->set_key(ticket->key);
  RequestOptions how;
  how.front = true;  // waiters need it
  link_.ask<etcdpb::TxnResponse>(
      Call::txn, txn, how,
      lifetime_.guard([this, ticket, removal = sequencer_.removing(ticket->prefix),
                       answer = std::move(answer)](Reply<etcdpb::TxnResponse>& reply) mutable {
        removal.end();
        if (!reply.ok()) {
          ticket->removal_in_doubt |= reply.status == Status::lost;
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
        answer(WithdrawResult{found || ticket->removal_in_doubt || ticket->token == 0});
      }));
}

}  // namespace baton::etcd
