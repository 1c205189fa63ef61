// The faults of a simulated etcd cluster.
#include "sim_etcd.h"

namespace baton::sim {

using namespace std::chrono_literals;

bool EtcdSimStore::strike() {
  const auto member = static_cast<std::size_t>(world_.pick(0, kMembers - 1));
  const std::string who = "member " + std::to_string(member);
  const auto what = world_.pick(0, 6);
  // A rollback (6) and a lease that a stopped leader ends too early (4) must be noticed at once, so
  // they do not count as trouble.
  if (what != 4 && what != 6) troubled_until_ = world_.now() + timeout_ * 3;
  switch (what) {
    case 0:
      if (!quirks_.on(Quirk::etcd_compaction)) return false;
      world_.note("compaction");
      etcd_.compact(std::max<std::int64_t>(
          0, etcd_.revision() - static_cast<std::int64_t>(world_.pick(0, 3))));
      return true;
    case 1:
      if (!quirks_.on(Quirk::etcd_ttl_reset)) return false;
      world_.note(who + " is elected");
      etcd_.elect(member, kElection);
      return true;
    case 2:
      if (!quirks_.on(Quirk::etcd_future_revision)) return false;
      world_.note(who + " lags");
      etcd_.lag(member);
      world_.after(world_.span(1ms, timeout_), [this] { etcd_.catch_up(); });
      return true;
    case 3:
      return isolate(member, world_.span(1ms, timeout_ * 2));
    case 4:
      return stop(member, world_.span(1ms, timeout_ * 2));
    case 5:
      world_.note(who + " is restarted");
      members_.set_down(member, true);
      for (const auto& [life, port] : ports_) {
        if (life->alive) port->wire.break_streams(member);
      }
      etcd_.member(member).believes = false;  // a server that starts does not lead
      if (leads(member)) elect_another(member);
      world_.after(world_.span(1ms, timeout_ * 2),
                   [this, member] { members_.set_down(member, false); });
      return true;
    default:
      return quirks_.on(Quirk::etcd_set_back) && set_back();
  }
}

void EtcdSimStore::heal() {
  healed_ = true;
  for (std::size_t i = 0; i < kMembers; ++i) {
    if (members_.stopped(i)) wake(i);
    members_.set_down(i, false);
    etcd_.member(i).no_leader = etcd_.member(i).believes = false;
  }
  etcd_.catch_up();
  if (!etcd_.led()) etcd_.elect(etcd_.leader(), kElection);
}

// False during an election: the last leader was stopped, restarted or cut off.
bool EtcdSimStore::leads(std::size_t member) const {
  return etcd_.led() && etcd_.leader() == member;
}

void EtcdSimStore::elect_another(std::size_t instead_of) {
  etcd_.depose();
  world_.after(world_.span(kElection, kElection * 2), [this, instead_of] {
    if (etcd_.led()) return;
    std::size_t next = (instead_of + 1) % kMembers;
    if (members_.stopped(next) || members_.down(next)) next = (next + 1) % kMembers;
    world_.note("member " + std::to_string(next) + " is elected");
    etcd_.elect(next, kElection);
  });
}

// Cuts a member off from the other members. Clients still reach it. A leader that is cut off takes
// itself for the leader for a while, and renews leases alone.
bool EtcdSimStore::isolate(std::size_t member, Nanos span) {
  if (etcd_.member(member).no_leader) return false;
  world_.note("member " + std::to_string(member) + " is cut off");
  etcd_.lag(member);
  etcd_.member(member).no_leader = true;
  if (leads(member)) {
    etcd_.member(member).believes = true;
    elect_another(member);
    // The old leader steps down before a third leader can be elected: etcd checks the quorum within
    // two election timeouts.
    world_.after(kElection * 2 - 1ms, [this, member] { etcd_.member(member).believes = false; });
  }
  world_.after(span, [this, member] {
    etcd_.member(member).no_leader = etcd_.member(member).believes = false;
    etcd_.catch_up();
  });
  return true;
}

bool EtcdSimStore::stop(std::size_t member, Nanos span) {
  if (members_.stopped(member)) return false;
  world_.note("member " + std::to_string(member) + " is stopped");
  members_.stop(member);
  if (leads(member)) {
    stale_.clear();
    for (const auto lease : etcd_.leases()) stale_[lease] = etcd_.expires(lease);
    elect_another(member);
  }
  world_.after(span, [this, member] {
    if (members_.stopped(member)) wake(member);
  });
  return true;
}

// Before the old leader learns of the new one, it ends the leases that have expired in its own old
// table.
void EtcdSimStore::wake(std::size_t member) {
  members_.resume(member);
  const auto stale = std::exchange(stale_, {});
  if (!quirks_.on(Quirk::etcd_15247) || etcd_.leader() == member) return;
  for (const auto& [lease, expires] : stale) {
    if (expires > loop_.now() || !etcd_.alive(lease)) continue;
    world_.note("the old leader ends lease " + std::to_string(lease));
    for (const auto& lock : locks_) {
      for (const auto& entry : entries(lock)) {
        if (entry.session == static_cast<std::uint64_t>(lease)) broken_.insert(entry.token);
      }
    }
    etcd_.revoke(lease);
  }
}

// Sets the store back to the revision at which the first ticket of a queue joined. Later tickets
// are gone.
bool EtcdSimStore::set_back() {
  const auto& lock = locks_[world_.pick(0, locks_.size() - 1)];
  const auto to = static_cast<std::int64_t>(front(lock));
  if (to == 0 || etcd_.revision() < to + 5 || rolled_back_from_ != 0) return false;
  rolled_back_from_ = static_cast<std::uint64_t>(etcd_.revision());
  ++rollbacks_;
  world_.note("the store is set back to " + std::to_string(to));
  etcd_.set_back(to);
  return true;
}

std::unique_ptr<SimStore> make_etcd_store(StoreParts parts) {
  return std::make_unique<EtcdSimStore>(std::move(parts));
}

}  // namespace baton::sim
