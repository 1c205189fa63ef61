// Leases: grants and revokes leases. leases_beats.cpp sends the keepalives.
#include "etcd/leases.h"

#include <algorithm>
#include <utility>

namespace baton::etcd {

using std::chrono::milliseconds;
using std::chrono::seconds;

Leases::Leases(Loop& loop, Link& link, milliseconds wanted, LeasesListener& listener)
    : loop_(loop), link_(link), wanted_(wanted), listener_(listener) {}

Leases::~Leases() {
  lifetime_.end();
  loop_.cancel(beat_timer_);
  loop_.cancel(late_timer_);
  loop_.cancel(token_timer_);
}

std::vector<std::int64_t> Leases::all() const {
  std::vector<std::int64_t> ids;
  ids.reserve(leases_.size());
  for (const auto& [id, lease] : leases_) ids.push_back(id);
  return ids;
}

// ---- granting

void Leases::reserve_slot(Answer<std::int64_t> answer) {
  if (beats_ == BeatState::closed) {
    answer(Error(Errc::closed, "the client is being closed"));
    return;
  }
  renew_unused();
  std::size_t active = 0;
  const std::pair<const std::int64_t, Lease>* emptiest = nullptr;
  for (const auto& lease : leases_) {
    if (!is_for_new_keys(lease.second.state())) continue;
    ++active;
    if (lease.second.state() == LeaseState::stale) continue;
    if (emptiest == nullptr || lease.second.keys < emptiest->second.keys) emptiest = &lease;
  }
  if (emptiest != nullptr && (emptiest->second.keys < kMostKeys || active >= kMostLeases)) {
    answer(emptiest->first);
    return;
  }
  waiting_.push_back(std::move(answer));
  const bool soon = std::any_of(leases_.begin(), leases_.end(), [](const auto& lease) {
    return lease.second.state() == LeaseState::stale;
  });
  if (!soon) grant();
}

// The deadline of a lease counts for the session from its first key on. LossThread checks deadlines
// only every 500 ms, so it would report the loss late if the deadline were suddenly near. Therefore
// a lease without keys is renewed before it gets a key if less than half of its TTL is left.
void Leases::renew_unused() {
  const bool others = std::any_of(leases_.begin(), leases_.end(),
                                  [](const auto& lease) { return lease.second.keys != 0; });
  if (!others) return;
  for (const std::int64_t id : all()) {
    const auto found = leases_.find(id);
    if (found == leases_.end()) continue;
    Lease& lease = found->second;
    if (lease.keys != 0 || lease.state() != LeaseState::active) continue;
    if (lease.deadline - loop_.now() >= Nanos(lease.ttl) / 2) continue;
    lease.on(LeaseEvent::aged);
    if (!lease.unanswered_since) renew(id);
  }
}

void Leases::grant() {
  if (std::exchange(granting_, true)) return;
  etcdpb::LeaseGrantRequest request;
  request.set_ttl(std::max<std::int64_t>(1, (wanted_.count() + 999) / 1000));
  RequestOptions how;
  how.bypass_limit = true;
  link_.ask<etcdpb::LeaseGrantResponse>(
      Call::lease_grant, request, how,
      lifetime_.guard([this](Reply<etcdpb::LeaseGrantResponse>& reply) { granted(reply); }));
}

void Leases::granted(Reply<etcdpb::LeaseGrantResponse>& reply) {
  granting_ = false;
  if (!reply.ok() || reply.body.ttl() <= 0 || reply.body.id() == 0) {
    // If the server granted a lease but the response was lost, that lease has no keys and expires.
    fail_waiting(reply.ok()
                     ? Error(Errc::store_error, "grant a lease: the response contains no lease")
                     : reply.error("grant a lease"));
    return;
  }
  if (beats_ == BeatState::closed) {
    // The lease was requested before close, and is not needed any more.
    fail_waiting(Error(Errc::closed, "the client is being closed"));
    etcdpb::LeaseRevokeRequest request;
    request.set_id(reply.body.id());
    RequestOptions how;
    how.bypass_limit = true;
    link_.ask<etcdpb::LeaseRevokeResponse>(Call::lease_revoke, request, how, [](auto&) {});
    return;
  }
  Lease lease;
  lease.ttl = std::min<seconds>(seconds(reply.body.ttl()), std::chrono::hours(24 * 366));
  lease.deadline = lease_deadline(reply.sent, lease.ttl);
  const bool stale = lease.deadline - loop_.now() < Nanos(lease.ttl) / 2;
  if (stale) lease.on(LeaseEvent::aged);
  const bool first = leases_.empty();
  const std::int64_t id = reply.body.id();
  leases_.emplace(id, lease);
  if (first) {
    ttl_ = lease.ttl;
    last_sent_ = reply.sent;
    plan_beat(last_sent_ + Nanos(ttl_) / 3);
  }
  listener_.leases_renewed();
  if (stale) {
    renew(id);
  } else {
    serve_waiting();
  }
}

// Each caller adds a key. Callers for which the leases have no room request another lease.
void Leases::serve_waiting() {
  for (auto& answer : std::exchange(waiting_, {})) reserve_slot(std::move(answer));
}

void Leases::fail_waiting(const Error& error) {
  for (auto& answer : std::exchange(waiting_, {})) answer(error);
}

void Leases::key_added(std::int64_t lease) {
  const auto found = leases_.find(lease);
  if (found == leases_.end()) return;
  // The deadline of this lease counts from now on, before a lock is granted under it.
  if (++found->second.keys == 1) listener_.leases_renewed();
}

void Leases::key_gone(std::int64_t lease) {
  const auto found = leases_.find(lease);
  if (found == leases_.end() || found->second.keys == 0) return;
  if (--found->second.keys != 0) return;
  found->second.on(LeaseEvent::emptied);
  revoke_unneeded(lease);
}

// ---- ending

void Leases::retire(std::int64_t id) {
  const auto found = leases_.find(id);
  if (found == leases_.end() || !is_for_new_keys(found->second.state())) return;
  found->second.on(LeaseEvent::retired);
  if (found->second.keys == 0) found->second.on(LeaseEvent::emptied);
  revoke_unneeded(id);
  const bool active = std::any_of(leases_.begin(), leases_.end(), [](const auto& lease) {
    return is_for_new_keys(lease.second.state());
  });
  if (!active) grant();  // so that the next join does not wait for a lease
}

void Leases::revoke_unneeded(std::int64_t id) {
  const auto found = leases_.find(id);
  if (found == leases_.end() || found->second.state() != LeaseState::unneeded) return;
  found->second.on(LeaseEvent::revocation_sent);
  etcdpb::LeaseRevokeRequest request;
  request.set_id(id);
  link_.ask<etcdpb::LeaseRevokeResponse>(
      Call::lease_revoke, request, {},
      lifetime_.guard([this, id](Reply<etcdpb::LeaseRevokeResponse>& reply) {
        const auto lease = leases_.find(id);
        if (lease == leases_.end()) return;
        if (reply.ok() || reply.status == Status::lease_gone) {
          lease->second.on(LeaseEvent::revoked);
          forget(id);
        } else {
          lease->second.on(LeaseEvent::revocation_failed);
        }
      }));
}

void Leases::forget(std::int64_t id) {
  leases_.erase(id);
  beat_settled();
  listener_.lease_revoked(id);
  listener_.leases_renewed();
}

void Leases::drop_idle() {
  std::size_t active = 0;
  for (const auto& [id, lease] : leases_) active += lease.state() == LeaseState::active ? 1 : 0;
  for (auto& [id, lease] : leases_) {
    if (lease.state() == LeaseState::active && lease.keys == 0 && active > 1) {
      lease.on(LeaseEvent::retired);
      lease.on(LeaseEvent::emptied);
      --active;
    }
    revoke_unneeded(id);
  }
}

void Leases::revoke_all(Answer<Done> answer) {
  on(BeatEvent::close);
  loop_.cancel(beat_timer_);
  loop_.cancel(std::exchange(late_timer_, TimerId::none));
  loop_.cancel(std::exchange(token_timer_, TimerId::none));
  stream_.reset();
  fail_waiting(Error(Errc::closed, "the client is being closed"));
  struct Goodbye {
    std::size_t left = 0;
    Answer<Done> answer;
  };
  const auto goodbye = std::make_shared<Goodbye>();
  goodbye->left = leases_.size();
  goodbye->answer = std::move(answer);
  if (goodbye->left == 0) {
    loop_.defer(lifetime_.guard([goodbye] { goodbye->answer(Done{}); }));
    return;
  }
  const auto ids = all();
  // Retry transient failures while the caller waits: revoking a lease deletes its keys at once, and
  // other clients need not wait until it expires.
  const auto again = std::make_shared<std::function<void(std::int64_t)>>();
  *again = lifetime_.guard([this, goodbye, weak = std::weak_ptr(again)](std::int64_t id) {
    etcdpb::LeaseRevokeRequest request;
    request.set_id(id);
    RequestOptions how;
    how.bypass_limit = true;
    link_.ask<etcdpb::LeaseRevokeResponse>(
        Call::lease_revoke, request, how,
        lifetime_.guard(
            [this, goodbye, id, self = weak.lock()](Reply<etcdpb::LeaseRevokeResponse>& reply) {
              if (is_transient(reply.status) && self != nullptr) {
                loop_.at(loop_.now() + milliseconds(100), [self, id] { (*self)(id); });
                return;
              }
              if (--goodbye->left == 0) goodbye->answer(Done{});
            }));
  });
  for (const std::int64_t id : ids) (*again)(id);
}

// ---- deadline

Time Leases::deadline() const {
  // A lease without keys counts only if no lease has keys: a slow grant of a new lease must not end
  // holds under another lease.
  Time with_keys = kNever;
  Time any = kNever;
  for (const auto& [id, lease] : leases_) {
    if (!is_kept(lease.state())) continue;
    any = std::min(any, lease.deadline);
    if (lease.keys != 0) with_keys = std::min(with_keys, lease.deadline);
  }
  const Time earliest = with_keys != kNever ? with_keys : any;
  return earliest == kNever ? Time{} : earliest;
}

Time Leases::suspect_at() const noexcept { return last_sent_ + Nanos(ttl_) / 2; }

}  // namespace baton::etcd
