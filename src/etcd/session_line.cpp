// What an EtcdSession stands on: opening, the lease, the end, and keys that nobody wants.
#include "etcd/session.h"

#include "common/base/mutant.h"

#include <algorithm>
#include <utility>

namespace baton::internal {

using std::chrono::milliseconds;

namespace {
constexpr milliseconds kRetry{100};
constexpr milliseconds kSweep{60'000};
}  // namespace

EtcdSession::EtcdSession(EtcdSessionParts parts, SessionListener& listener,
                         std::function<void(Result<Done>)> opened)
    : parts_(std::move(parts)),
      listener_(listener),
      opened_(std::move(opened)),
      lease_(std::make_shared<LeaseView>(Time{}, Time{})),
      link_(parts_.link, *this),
      leases_(*parts_.link.loop, link_, parts_.session_timeout, *this),
      lister_(*parts_.link.loop, link_),
      watches_(*parts_.link.loop, link_) {
  loop().defer([this, alive = alive_] {
    if (*alive) begin();
  });
}

EtcdSession::~EtcdSession() {
  *alive_ = false;
  lease_->end();
  loop().cancel(sweep_timer_);
  for (const TimerId retry : retries_) loop().cancel(retry);
  for (const auto& [lease, group] : bereaved_) loop().cancel(group.timer);
}

// ---- opening

void EtcdSession::begin() {
  // Asked in the same breath: what operators want to know, and what we stand on.
  const auto answered = std::make_shared<int>(0);
  const auto done = [this, answered] {
    if (++*answered != 2 || ended_ || closing_) return;
    ready_ = true;
    sweep_later();
    opened_(Done{});
  };
  EtcdHow how;
  how.fresh = false;
  how.urgent = true;
  link_.ask<etcdpb::StatusResponse>(
      EtcdCall::status, etcdpb::StatusRequest{}, how,
      [this, alive = alive_, done](EtcdReply<etcdpb::StatusResponse>& reply) {
        if (!*alive) return;
        if (reply.ok()) version_ = reply.body.version();
        done();
      });
  leases_.with_room([this, alive = alive_, done](const Result<std::int64_t>& lease) {
    if (!*alive || ended_ || closing_) return;
    if (lease) {
      done();
      return;
    }
    // Whoever opened us decides how long we try.
    again([this] { begin(); });
    opened_(lease.error());
  });
}

void EtcdSession::again(Task task) {
  auto id = std::make_shared<TimerId>(TimerId::none);
  *id = loop().at(loop().now() + kRetry, [this, id, task = std::move(task)]() mutable {
    retries_.erase(*id);
    task();
  });
  retries_.insert(*id);
}

SessionInfo EtcdSession::info() const {
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

milliseconds EtcdSession::backstop() const {
  return std::clamp(leases_.ttl() / 2, milliseconds(1'000), milliseconds(30'000));
}

// ---- the lease

void EtcdSession::leases_renewed() {
  const Time deadline = leases_.deadline();
  if (ended_ || closing_ || deadline == Time{}) return;
  const Time now = loop().now();
  if (now < lease_->deadline()) {
    lease_->extend(leases_.suspect_at(), deadline);
  } else if (deadline > now) {
    // It ran out here, though not at the store: a new one begins. What was held under the old one
    // is lost; who waits keeps his place.
    lease_->end();
    lease_ = std::make_shared<LeaseView>(leases_.suspect_at(), deadline);
  }
}

void EtcdSession::leases_lost(const std::string& detail) { over(Errc::session_expired, detail); }

void EtcdSession::link_left(std::size_t endpoint) {
  forget_pins();
  watches_.leave(endpoint);
}

// After a change of member, or a gap: the cluster must be asked before anything is granted.
void EtcdSession::forget_pins() {
  for (const auto& [nonce, place] : places_) place->pin.reset();
}

void EtcdSession::link_back() {
  forget_pins();
  if (ready_ && !ended_ && !closing_) listener_.session_resumed();
}

void EtcdSession::link_store_changed(const std::string& detail) {
  over(Errc::store_changed, detail);
}

void EtcdSession::over(Errc reason, const std::string& detail) {
  if (std::exchange(ended_, true)) return;
  lease_->end(reason == Errc::store_changed ? reason : Errc::session_expired);
  if (closing_) return;
  // The other leases have keys that block everybody until they run out.
  for (const std::int64_t lease : leases_.all()) {
    etcdpb::LeaseRevokeRequest request;
    request.set_id(lease);
    EtcdHow how;
    how.urgent = true;
    link_.ask<etcdpb::LeaseRevokeResponse>(EtcdCall::lease_revoke, request, how, [](auto&) {});
  }
  if (ready_) {
    listener_.session_ended(reason, detail);
  } else {
    opened_(Error(Errc::connection_failed, detail));
  }
}

void EtcdSession::close(Answer<Done> answer) {
  closing_ = true;
  loop().cancel(sweep_timer_);
  leases_.revoke_all(std::move(answer));
}

// ---- keys that nobody wants

// A transaction whose answer never came may land late, after a read and a removal that found
// nothing. So its key is watched, and its lease takes no new keys: once the lease is revoked,
// nothing can land under it any more.
void EtcdSession::abandon(const PlacePtr& place, std::int64_t revision) {
  if (abandoned_.contains(place->key) || mutant(Mutant::stray_txn_stays)) return;
  Abandoned stray;
  stray.lease = place->lease;
  stray.watch = watches_.watch_puts(
      place->key, revision,
      [this, key = place->key](std::int64_t created) { remove_stray(key, created); });
  abandoned_.emplace(place->key, stray);
  leases_.retire(place->lease);
  sweep_later();
}

void EtcdSession::lease_revoked(std::int64_t lease) {
  for (auto stray = abandoned_.begin(); stray != abandoned_.end();) {
    if (stray->second.lease == lease) {
      watches_.unwatch(stray->second.watch);
      stray = abandoned_.erase(stray);
    } else {
      ++stray;
    }
  }
}

void EtcdSession::remove_stray(const std::string& key, std::int64_t created) {
  etcdpb::TxnRequest txn;
  auto& compare = *txn.add_compare();
  compare.set_key(key);
  compare.set_target(etcdpb::Compare::CREATE);
  compare.set_result(etcdpb::Compare::EQUAL);
  compare.set_create_revision(created);
  txn.add_success()->mutable_request_delete_range()->set_key(key);
  link_.ask<etcdpb::TxnResponse>(
      EtcdCall::txn, txn, {},
      [this, alive = alive_, key, created](EtcdReply<etcdpb::TxnResponse>& reply) {
        if (!*alive || !etcd_passes(reply.status)) return;
        again([this, key, created] { remove_stray(key, created); });
      });
}

// Watches are hints: from time to time we ask which keys our leases have.
void EtcdSession::sweep_later() {
  const auto soon = std::clamp(leases_.ttl() / 2, milliseconds(500), kSweep);
  const Time at = loop().now() + (abandoned_.empty() ? kSweep : soon);
  // Sooner if there is more to find, but not put off by what comes meanwhile.
  if (sweep_timer_ != TimerId::none && sweep_at_ <= at) return;
  loop().cancel(sweep_timer_);
  sweep_at_ = at;
  sweep_timer_ = loop().at(at, [this] { sweep(); });
}

void EtcdSession::sweep() {
  sweep_timer_ = TimerId::none;
  for (const std::int64_t lease : leases_.all()) {
    etcdpb::LeaseTimeToLiveRequest request;
    request.set_id(lease);
    request.set_keys(true);
    EtcdHow how;
    how.fresh = false;
    link_.ask<etcdpb::LeaseTimeToLiveResponse>(
        EtcdCall::lease_time_to_live, request, how,
        [this, alive = alive_, lease](EtcdReply<etcdpb::LeaseTimeToLiveResponse>& reply) {
          if (*alive && reply.ok()) swept(lease, reply.body);
        });
  }
  sweep_later();
}

void EtcdSession::swept(std::int64_t lease, const etcdpb::LeaseTimeToLiveResponse& answer) {
  if (mutant(Mutant::stray_txn_stays)) return;
  std::set<std::string_view> wanted;
  for (const auto& [nonce, place] : places_) {
    if (place->lease == lease) wanted.insert(place->key);
  }
  for (const auto& key : answer.keys()) {
    if (wanted.contains(key)) continue;
    etcdpb::TxnRequest txn;
    auto& compare = *txn.add_compare();  // nobody else's, whatever its name
    compare.set_key(key);
    compare.set_target(etcdpb::Compare::LEASE);
    compare.set_result(etcdpb::Compare::EQUAL);
    compare.set_lease(lease);
    txn.add_success()->mutable_request_delete_range()->set_key(key);
    link_.ask<etcdpb::TxnResponse>(EtcdCall::txn, txn, {}, [](auto&) {});
  }
}

}  // namespace baton::internal
