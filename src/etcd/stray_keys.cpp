#include "etcd/stray_keys.h"

#include <algorithm>
#include <chrono>

namespace baton::etcd {

using std::chrono::milliseconds;

namespace {
constexpr milliseconds kSweep{60'000};
}  // namespace

StrayKeys::StrayKeys(const SessionContext& context, Leases& leases, Watches& watches,
                     const OwnTickets& tickets)
    : context_(context), leases_(leases), watches_(watches), tickets_(tickets) {}

StrayKeys::~StrayKeys() { stop(); }

void StrayKeys::stop() { context_.loop.cancel(sweep_timer_); }

// A transaction without an answer may take effect late, after a read and a removal that found no
// key. So the session watches the key, and adds no new keys to its lease. Once the lease is
// revoked, the transaction can no longer take effect.
void StrayKeys::abandon(const OwnTicket& ticket, std::int64_t revision) {
  if (abandoned_.contains(ticket.key)) return;
  Abandoned stray;
  stray.lease = ticket.lease;
  stray.watch = watches_.watch_puts(
      ticket.key, revision,
      [this, key = ticket.key](std::int64_t created) { remove_stray(key, created); });
  abandoned_.emplace(ticket.key, stray);
  leases_.retire(ticket.lease);
  sweep_later();
}

void StrayKeys::lease_revoked(std::int64_t lease) {
  for (auto stray = abandoned_.begin(); stray != abandoned_.end();) {
    if (stray->second.lease == lease) {
      watches_.unwatch(stray->second.watch);
      stray = abandoned_.erase(stray);
    } else {
      ++stray;
    }
  }
}

void StrayKeys::remove_stray(const std::string& key, std::int64_t created) {
  etcdpb::TxnRequest txn;
  auto& compare = *txn.add_compare();
  compare.set_key(key);
  compare.set_target(etcdpb::Compare::CREATE);
  compare.set_result(etcdpb::Compare::EQUAL);
  compare.set_create_revision(created);
  txn.add_success()->mutable_request_delete_range()->set_key(key);
  context_.link.ask<etcdpb::TxnResponse>(
      Call::txn, txn, {},
      context_.lifetime.guard([this, key, created](Reply<etcdpb::TxnResponse>& reply) {
        if (!is_transient(reply.status)) return;
        context_.retries.later([this, key, created] { remove_stray(key, created); });
      }));
}

// A watch can miss an abandoned key. So the session regularly asks which keys its leases have, and
// removes the keys without a ticket.
void StrayKeys::sweep_later() {
  const auto soon = std::clamp(leases_.ttl() / 2, milliseconds(500), kSweep);
  const Time at = context_.loop.now() + (abandoned_.empty() ? kSweep : soon);
  // The sweep is only moved to an earlier time, never to a later one.
  if (sweep_timer_ != TimerId::none && sweep_at_ <= at) return;
  context_.loop.cancel(sweep_timer_);
  sweep_at_ = at;
  sweep_timer_ = context_.loop.at(at, [this] { sweep(); });
}

void StrayKeys::sweep() {
  sweep_timer_ = TimerId::none;
  for (const std::int64_t lease : leases_.all()) {
    etcdpb::LeaseTimeToLiveRequest request;
    request.set_id(lease);
    request.set_keys(true);
    RequestOptions how;
    how.linearizable = false;
    context_.link.ask<etcdpb::LeaseTimeToLiveResponse>(
        Call::lease_time_to_live, request, how,
        context_.lifetime.guard([this, lease](Reply<etcdpb::LeaseTimeToLiveResponse>& reply) {
          if (reply.ok()) swept(lease, reply.body);
        }));
  }
  sweep_later();
}

void StrayKeys::swept(std::int64_t lease, const etcdpb::LeaseTimeToLiveResponse& answer) {
  const auto wanted = tickets_.keys_of(lease);
  for (const auto& key : answer.keys()) {
    if (!wanted.contains(key)) remove_unwanted(key, lease);
  }
}

// Reads the create revision first. The name may be used again: a removal by name alone could remove
// the key of a ticket that joins meanwhile.
void StrayKeys::remove_unwanted(const std::string& key, std::int64_t lease) {
  etcdpb::RangeRequest request;
  request.set_key(key);
  request.set_keys_only(true);
  context_.link.ask<etcdpb::RangeResponse>(
      Call::range, request, {},
      context_.lifetime.guard([this, key, lease](Reply<etcdpb::RangeResponse>& reply) {
        if (!reply.ok() || reply.body.kvs_size() != 1) return;
        const auto& found = reply.body.kvs(0);
        if (found.lease() != lease || tickets_.have(lease, key)) return;
        remove_stray(key, found.create_revision());
      }));
}

}  // namespace baton::etcd
