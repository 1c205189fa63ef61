// Tickets; session_watch.cpp has what is watched, session_line.cpp the lease and the end,
// session_admin.cpp the operators' calls.
#include "etcd/session.h"

#include "etcd/path.h"
#include "etcd/queue.h"

#include <utility>

namespace baton::internal {

namespace {

void compare_created(etcdpb::TxnRequest& txn, const std::string& key, std::int64_t revision) {
  auto& compare = *txn.add_compare();
  compare.set_key(key);
  compare.set_target(etcdpb::Compare::CREATE);
  compare.set_result(etcdpb::Compare::EQUAL);
  compare.set_create_revision(revision);
}

// Puts the key and reads the newest keys of the lock. Sent again it finds what it made.
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
  const auto newest = etcd_short_range(prefix, 0);
  *txn.add_success()->mutable_request_range() = newest;
  *txn.add_failure()->mutable_request_range() = newest;
  return txn;
}

}  // namespace

std::string EtcdSession::prefix(const LockName& name) const {
  return etcd_prefix(parts_.root, name.text());
}

void EtcdSession::forget(const PlacePtr& place) {
  if (places_.erase(place->nonce) > 0 && place->lease != 0) leases_.key_gone(place->lease);
}

// ---- joining

void EtcdSession::join(const LockName& name, Nonce nonce, Answer<Standing> answer) {
  const auto known = places_.find(nonce);
  if (known != places_.end()) {
    if (known->second->state == Place::State::there) {
      look(name, nonce, std::move(answer));
    } else {
      enter(known->second, std::move(answer));
    }
    return;
  }
  auto place = std::make_shared<Place>(name, nonce);
  place->prefix = prefix(name);
  places_.emplace(nonce, place);
  enter(place, std::move(answer));
}

// In the order of the calls: see EtcdDoors.
void EtcdSession::enter(const PlacePtr& place, Answer<Standing> answer) {
  doors_.join(place->prefix, [this, place, answer = std::move(answer)](bool go) mutable {
    if (go && !place->withdrawn) {
      send_join(place, std::move(answer));
      return;
    }
    if (!go && !place->doubted) forget(place);
    // Given up before its turn, or nobody can be reached.
    loop().defer([this, alive = alive_, place, go, answer = std::move(answer)]() mutable {
      if (!*alive) return;
      if (go) doors_.joined(place->prefix, true);
      answer(Error(go ? Errc::cancelled : Errc::connection_failed,
                   "join " + place->prefix + ": " + (go ? "given up" : link_.trouble())));
    });
  });
}

void EtcdSession::send_join(const PlacePtr& place, Answer<Standing> answer) {
  if (place->lease == 0) {
    leases_.with_room([this, alive = alive_, place,
                       answer = std::move(answer)](Result<std::int64_t> lease) mutable {
      if (!*alive) return;
      if (lease && !place->withdrawn) {
        place->lease = *lease;
        place->key = etcd_key(place->prefix, *lease, place->nonce);
        leases_.key_added(*lease);
        send_join(place, std::move(answer));
        return;
      }
      forget(place);
      const auto error =
          lease ? Error(Errc::cancelled, "join " + place->prefix + ": given up") : lease.error();
      loop().defer([this, alive, place, error, answer = std::move(answer)]() mutable {
        if (!*alive) return;
        doors_.joined(place->prefix, !transient(error));
        answer(error);
      });
    });
    return;
  }
  place->state = Place::State::joining;
  const auto txn =
      join_txn(place->prefix, place->key,
               etcd_encode_value(parts_.label, std::chrono::system_clock::now()), place->lease);
  EtcdHow how;
  how.wanted = [place] { return !place->withdrawn; };
  link_.ask<etcdpb::TxnResponse>(EtcdCall::txn, txn, how,
                                 [this, alive = alive_, place, answer = std::move(answer)](
                                     EtcdReply<etcdpb::TxnResponse>& reply) mutable {
                                   if (!*alive) return;
                                   // One that was given up says nothing about those behind it.
                                   const bool served =
                                       !etcd_passes(reply.status) || place->withdrawn;
                                   if (reply.ok()) {
                                     entered(place, reply, std::move(answer));
                                   } else {
                                     not_entered(place, reply, std::move(answer));
                                   }
                                   if (*alive && !ended_) doors_.joined(place->prefix, served);
                                 });
}

void EtcdSession::entered(const PlacePtr& place, EtcdReply<etcdpb::TxnResponse>& reply,
                          Answer<Standing> answer) {
  const auto& body = reply.body;
  const bool well_formed =
      body.responses_size() == 2 && body.responses(1).has_response_range() &&
      (body.succeeded() || (body.responses(0).has_response_range() &&
                            body.responses(0).response_range().kvs_size() == 1));
  if (!well_formed) {
    place->state = Place::State::in_doubt;
    place->doubted = true;
    flush_gone(place);
    answer(Error(Errc::store_error, "join " + place->prefix + ": the answer makes no sense"));
    return;
  }
  place->state = Place::State::there;
  place->token = static_cast<std::uint64_t>(
      body.succeeded() ? body.header().revision()
                       : body.responses(0).response_range().kvs(0).create_revision());
  place->sign = std::make_shared<Sign>();
  if (place->withdrawn) {
    flush_gone(place);
    answer(Error(Errc::cancelled, "join " + place->prefix + ": given up"));
    return;
  }
  tell(place, body.responses(1).response_range(), body.header().revision(), std::move(answer));
}

void EtcdSession::not_entered(const PlacePtr& place, const EtcdReply<etcdpb::TxnResponse>& reply,
                              Answer<Standing> answer) {
  const auto error = reply.error("join " + place->prefix);
  if (reply.status == EtcdStatus::lease_gone) {
    over(Errc::session_expired, error.what());
    return;
  }
  place->doubted |= reply.status == EtcdStatus::lost;
  if (place->doubted) {
    place->state = Place::State::in_doubt;
  } else {
    forget(place);  // it was not made, and will not be
  }
  flush_gone(place);
  answer(error);
}

// Withdrawals that came while the transaction was on its way.
void EtcdSession::flush_gone(const PlacePtr& place) {
  for (auto& gone : std::exchange(place->gone, {})) {
    withdraw(place->name, place->nonce, std::move(gone));
  }
}

// ---- where we stand

void EtcdSession::tell(const PlacePtr& place, const etcdpb::RangeResponse& reading,
                       std::int64_t revision, Answer<Standing> answer) {
  auto result = etcd_standing(place->prefix, place->key, place->token, place->nonce, reading);
  if (result.incomplete) {
    look_at_all(place, 0, std::move(answer));
    return;
  }
  // A reading from before our key was removed, though its watch has told of that: others may hold
  // the lock by now. Once for each removal: what the cluster says then, counts.
  if (revision < place->gone_at &&
      std::exchange(place->doubted_at, place->gone_at) != place->gone_at) {
    look_at_all(place, static_cast<std::int64_t>(place->token), std::move(answer));
    return;
  }
  place->seen = std::max(place->seen, revision);
  place->told = revision;
  // News that is older would show somebody whom this reading does not show any more; and his watch,
  // which begins at what was seen, would never tell that he is gone.
  if (place->pin && place->pin->revision <= place->seen) place->pin.reset();
  result.standing.sign = place->sign;
  answer(std::move(result.standing));
}

void EtcdSession::look(const LockName&, Nonce nonce, Answer<Standing> answer) {
  const auto known = places_.find(nonce);
  if (known == places_.end() || known->second->state != Place::State::there) {
    loop().defer([alive = alive_, answer = std::move(answer)]() mutable {
      if (*alive) answer(Standing{});
    });
    return;
  }
  const auto place = known->second;
  if (const auto pin = std::exchange(place->pin, std::nullopt)) {
    look_pinned(place, *pin, std::move(answer));
  } else {
    look_at_all(place, static_cast<std::int64_t>(place->token), std::move(answer));
  }
}

void EtcdSession::look_at_all(const PlacePtr& place, std::int64_t newest, Answer<Standing> answer) {
  lister_.read(
      place->prefix, newest,
      [this, place, answer = std::move(answer)](EtcdReply<etcdpb::RangeResponse>& reply) mutable {
        if (reply.ok()) {
          tell(place, reply.body, reply.body.header().revision(), std::move(answer));
        } else {
          answer(reply.error("look at " + place->prefix));
        }
      });
}

// The member that told us of the change, at the revision of the change, without the others: what it
// shows was so, entries ahead never come back, and the deletion of our own key comes to its watch.
void EtcdSession::look_pinned(const PlacePtr& place, const EtcdNews& news,
                              Answer<Standing> answer) {
  auto request = etcd_short_range(place->prefix, static_cast<std::int64_t>(place->token));
  request.set_revision(news.revision);
  request.set_serializable(true);
  EtcdHow how;
  how.endpoint = news.endpoint;
  how.fresh = false;
  how.timeout = kPinnedPatience;
  link_.ask<etcdpb::RangeResponse>(
      EtcdCall::range, request, how,
      [this, alive = alive_, place, revision = news.revision,
       answer = std::move(answer)](EtcdReply<etcdpb::RangeResponse>& reply) mutable {
        if (!*alive) return;
        if (reply.ok()) {
          tell(place, reply.body, revision, std::move(answer));
        } else {
          // Not there yet, compacted away, or the member has gone.
          look_at_all(place, static_cast<std::int64_t>(place->token), std::move(answer));
        }
      });
}

void EtcdSession::peek(const LockName& name, Answer<bool> busy) {
  const std::string where = prefix(name);
  doors_.peek(where, [this, where, busy = std::move(busy)](bool go) mutable {
    if (go) {
      peek_now(where, std::move(busy));
      return;
    }
    loop().defer([alive = alive_, text = link_.trouble(), where, busy = std::move(busy)]() mutable {
      if (!*alive) return;
      busy(Error(Errc::connection_failed, "look at " + where + ": " + text));
    });
  });
}

void EtcdSession::peek_now(const std::string& where, Answer<bool> busy) {
  auto request = etcd_full_range(where);
  request.set_limit(kShortReading);
  link_.ask<etcdpb::RangeResponse>(
      EtcdCall::range, request, {},
      [this, alive = alive_, where,
       busy = std::move(busy)](EtcdReply<etcdpb::RangeResponse>& reply) mutable {
        if (!*alive) return;
        if (!reply.ok()) {
          busy(reply.error("look at " + where));
          return;
        }
        for (const auto& kv : reply.body.kvs()) {
          if (etcd_direct(where, kv.key())) {
            busy(true);
            return;
          }
        }
        if (!reply.body.more()) {
          busy(false);
          return;
        }
        // Nothing but entries of locks below it, so far.
        lister_.read(
            where, 0,
            [where, busy = std::move(busy)](EtcdReply<etcdpb::RangeResponse>& all) mutable {
              if (!all.ok()) {
                busy(all.error("look at " + where));
                return;
              }
              bool any = false;
              for (const auto& kv : all.body.kvs()) any |= etcd_direct(where, kv.key());
              busy(any);
            });
      });
}

// ---- leaving

void EtcdSession::withdraw(const LockName&, Nonce nonce, Answer<Done> answer) {
  const auto known = places_.find(nonce);
  if (known == places_.end()) {
    loop().defer([alive = alive_, answer = std::move(answer)]() mutable {
      if (*alive) answer(Done{});
    });
    return;
  }
  const auto place = known->second;
  place->withdrawn = true;
  switch (place->state) {
    case Place::State::waiting:
      // Nothing was sent, and nothing will be.
      forget(place);
      loop().defer([alive = alive_, answer = std::move(answer)]() mutable {
        if (*alive) answer(Done{});
      });
      return;
    case Place::State::joining:
      place->gone.push_back(std::move(answer));
      return;
    case Place::State::in_doubt:
    case Place::State::there:
      remove(place, std::move(answer));
      return;
  }
}

void EtcdSession::remove(const PlacePtr& place, Answer<Done> answer) {
  etcdpb::TxnRequest txn;
  // Exactly this ticket. In doubt its revision is not known, but the name is ours alone.
  if (place->state == Place::State::there) {
    compare_created(txn, place->key, static_cast<std::int64_t>(place->token));
  }
  txn.add_success()->mutable_request_delete_range()->set_key(place->key);
  const auto removal = doors_.removing(place->prefix);
  EtcdHow how;
  how.first = true;  // others wait for it
  link_.ask<etcdpb::TxnResponse>(
      EtcdCall::txn, txn, how,
      [this, alive = alive_, place, removal,
       answer = std::move(answer)](EtcdReply<etcdpb::TxnResponse>& reply) mutable {
        if (!*alive) return;
        doors_.removed(place->prefix, removal);
        if (!reply.ok()) {
          place->removal_in_doubt |= reply.status == EtcdStatus::lost;
          answer(reply.error("remove " + place->key));
          return;
        }
        const bool found = reply.body.succeeded() && reply.body.responses_size() == 1 &&
                           reply.body.responses(0).response_delete_range().deleted() > 0;
        const auto revision = reply.body.header().revision();
        if (place->token != 0) {
          watches_.deleted(place->key, static_cast<std::int64_t>(place->token), revision,
                           reply.endpoint);
        }
        if (place->doubted) abandon(place, revision);
        forget(place);
        answer(Done{found || place->removal_in_doubt || place->token == 0});
      });
}

}  // namespace baton::internal
