// Session: opens, keeps its lease, ends, and removes abandoned keys.
#include "etcd/session.h"

#include "common/base/mutant.h"

#include <algorithm>
#include <utility>

namespace baton::etcd {

using std::chrono::milliseconds;

namespace {
constexpr milliseconds kRetry{100};
constexpr milliseconds kSweep{60'000};
}  // namespace

Session::Session(SessionParts parts, SessionListener& listener,
                 std::function<void(Result<Done>)> opened)
    : parts_(std::move(parts)),
      listener_(listener),
      opened_(std::move(opened)),
      lease_(std::make_shared<LeaseView>(Time{}, Time{})),
      link_(parts_.link, *this),
      leases_(*parts_.link.loop, link_, parts_.session_timeout, *this),
      lister_(*parts_.link.loop, link_),
      watches_(*parts_.link.loop, link_),
      sequencer_(*parts_.link.loop),
      tickets_(leases_) {
  loop().defer(lifetime_.guard([this] { begin(); }));
}

Session::~Session() {
  lifetime_.end();
  lease_->end();
  loop().cancel(sweep_timer_);
  for (const TimerId retry : retries_) loop().cancel(retry);
  for (const auto& [lease, group] : key_losses_) loop().cancel(group.timer);
}

// ---- opening

void Session::begin() {
  // Requests the server version (for operators) and the first lease at the same time.
  const auto answered = std::make_shared<int>(0);
  const auto done = [this, answered] {
    if (++*answered != 2 || ended_ || closing_) return;
    ready_ = true;
    sweep_later();
    opened_(Done{});
  };
  RequestOptions how;
  how.linearizable = false;
  how.bypass_limit = true;
  link_.ask<etcdpb::StatusResponse>(
      Call::status, etcdpb::StatusRequest{}, how,
      lifetime_.guard([this, done](Reply<etcdpb::StatusResponse>& reply) {
        if (reply.ok()) version_ = reply.body.version();
        done();
      }));
  leases_.reserve_slot(lifetime_.guard([this, done](const Result<std::int64_t>& lease) {
    if (ended_ || closing_) return;
    if (lease) {
      done();
      return;
    }
    // The caller that opened the session decides how long it retries.
    retry_later([this] { begin(); });
    opened_(lease.error());
  }));
}

void Session::retry_later(Task task) {
  auto id = std::make_shared<TimerId>(TimerId::none);
  *id = loop().at(loop().now() + kRetry, [this, id, task = std::move(task)]() mutable {
    retries_.erase(*id);
    task();
  });
  retries_.insert(*id);
}

SessionInfo Session::info() const {
  SessionInfo info;
  info.backend = "etcd";
  info.endpoint = link_.endpoint();
  info.timeout = leases_.ttl();
  info.server_version = version_;
  info.state = ended_         ? SessionState::closed
               : link_.down() ? SessionState::suspect
                              : SessionState::connected;
  return info;
}

milliseconds Session::backstop() const {
  return std::clamp(leases_.ttl() / 2, milliseconds(1'000), milliseconds(30'000));
}

// ---- the lease

void Session::leases_renewed() {
  const Time deadline = leases_.deadline();
  if (ended_ || closing_ || deadline == Time{}) return;
  const Time now = loop().now();
  if (now < lease_->deadline()) {
    lease_->extend(leases_.suspect_at(), deadline);
  } else if (deadline > now) {
    // The lease expired by our clock, but not in the store: start a new LeaseView. Holds under the
    // old one are lost; waiters keep their tickets.
    lease_->end();
    lease_ = std::make_shared<LeaseView>(leases_.suspect_at(), deadline);
  }
}

void Session::leases_lost(const std::string& detail) { end_session(Errc::session_expired, detail); }

void Session::link_left(std::size_t endpoint) { watches_.leave(endpoint); }

void Session::link_back() {
  if (ready_ && !ended_ && !closing_) listener_.session_resumed();
}

void Session::link_store_changed(const std::string& detail) {
  end_session(Errc::store_changed, detail);
}

void Session::end_session(Errc reason, const std::string& detail) {
  if (std::exchange(ended_, true)) return;
  sequencer_.close();
  lease_->end(reason == Errc::store_changed ? reason : Errc::session_expired);
  if (closing_) return;
  // The keys of the other leases would block all waiters until these leases expire: revoke them
  // now.
  for (const std::int64_t lease : leases_.all()) {
    etcdpb::LeaseRevokeRequest request;
    request.set_id(lease);
    RequestOptions how;
    how.bypass_limit = true;
    link_.ask<etcdpb::LeaseRevokeResponse>(Call::lease_revoke, request, how, [](auto&) {});
  }
  if (ready_) {
    listener_.session_ended(reason, detail);
  } else {
    opened_(Error(Errc::connection_failed, detail));
  }
}

void Session::close(Answer<Done> answer) {
  closing_ = true;
  loop().cancel(sweep_timer_);
  leases_.revoke_all(std::move(answer));
}

// ---- abandoned keys

// A transaction without an answer may take effect late, after a read and a removal that found no
// key. So the session watches the key, and adds no new keys to its lease. Once the lease is
// revoked, the transaction can no longer take effect.
void Session::abandon(const OwnTicketPtr& ticket, std::int64_t revision) {
  if (abandoned_.contains(ticket->key) || mutant(Mutant::stray_txn_stays)) return;
  Abandoned stray;
  stray.lease = ticket->lease;
  stray.watch = watches_.watch_puts(
      ticket->key, revision,
      [this, key = ticket->key](std::int64_t created) { remove_stray(key, created); });
  abandoned_.emplace(ticket->key, stray);
  leases_.retire(ticket->lease);
  sweep_later();
}

void Session::lease_revoked(std::int64_t lease) {
  for (auto stray = abandoned_.begin(); stray != abandoned_.end();) {
    if (stray->second.lease == lease) {
      watches_.unwatch(stray->second.watch);
      stray = abandoned_.erase(stray);
    } else {
      ++stray;
    }
  }
}

void Session::remove_stray(const std::string& key, std::int64_t created) {
  etcdpb::TxnRequest txn;
  auto& compare = *txn.add_compare();
  compare.set_key(key);
  compare.set_target(etcdpb::Compare::CREATE);
  compare.set_result(etcdpb::Compare::EQUAL);
  compare.set_create_revision(created);
  txn.add_success()->mutable_request_delete_range()->set_key(key);
  link_.ask<etcdpb::TxnResponse>(
      Call::txn, txn, {}, lifetime_.guard([this, key, created](Reply<etcdpb::TxnResponse>& reply) {
        if (!is_transient(reply.status)) return;
        retry_later([this, key, created] { remove_stray(key, created); });
      }));
}

// A watch can miss an abandoned key. So the session regularly asks which keys its leases have, and
// removes the keys without a ticket.
void Session::sweep_later() {
  const auto soon = std::clamp(leases_.ttl() / 2, milliseconds(500), kSweep);
  const Time at = loop().now() + (abandoned_.empty() ? kSweep : soon);
  // The sweep is only moved to an earlier time, never to a later one.
  if (sweep_timer_ != TimerId::none && sweep_at_ <= at) return;
  loop().cancel(sweep_timer_);
  sweep_at_ = at;
  sweep_timer_ = loop().at(at, [this] { sweep(); });
}

void Session::sweep() {
  sweep_timer_ = TimerId::none;
  for (const std::int64_t lease : leases_.all()) {
    etcdpb::LeaseTimeToLiveRequest request;
    request.set_id(lease);
    request.set_keys(true);
    RequestOptions how;
    how.linearizable = false;
    link_.ask<etcdpb::LeaseTimeToLiveResponse>(
        Call::lease_time_to_live, request, how,
        lifetime_.guard([this, lease](Reply<etcdpb::LeaseTimeToLiveResponse>& reply) {
          if (reply.ok()) swept(lease, reply.body);
        }));
  }
  sweep_later();
}

void Session::swept(std::int64_t lease, const etcdpb::LeaseTimeToLiveResponse& answer) {
  if (mutant(Mutant::stray_txn_stays)) return;
  const auto wanted = tickets_.keys_of(lease);
  for (const auto& key : answer.keys()) {
    if (wanted.contains(key)) continue;
    etcdpb::TxnRequest txn;
    auto& compare = *txn.add_compare();  // only if the key belongs to our lease
    compare.set_key(key);
    compare.set_target(etcdpb::Compare::LEASE);
    compare.set_result(etcdpb::Compare::EQUAL);
    compare.set_lease(lease);
    txn.add_success()->mutable_request_delete_range()->set_key(key);
    link_.ask<etcdpb::TxnResponse>(Call::txn, txn, {}, [](auto&) {});
  }
}

}  // namespace baton::etcd
