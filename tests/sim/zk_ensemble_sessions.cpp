// How the leader of a ZkEnsemble measures session times, and how late followers apply changes.
#include "zk_ensemble.h"

#include <algorithm>
#include <utility>

namespace baton::sim {

using namespace std::chrono_literals;

// Applies confirmed changes, sometimes late: a real server applies changes in another thread than
// the thread that talks to the leader.
void ZkEnsemble::in_turn(int server, Task task) {
  auto& turns = servers_[server].turns;
  const bool late = !healed_ && setup_.quirks.on(Quirk::zk_lagging_reads) && world_.chance(0.1);
  if (!late && turns.empty()) {
    task();
    return;
  }
  Time due = world_.now() + (late ? world_.span(1ms, Nanos(setup_.timeout) / 4) : Nanos{});
  if (!turns.empty()) due = std::max(due, turns.back().first);
  turns.emplace_back(due, std::move(task));
  world_.at(due, [this, alive = alive_, server, life = servers_[server].life] {
    if (!*alive) return;
    at_server(server, [this, server, life] {
      Server& here = servers_[server];
      while (here.life == life && !here.turns.empty() && here.turns.front().first <= world_.now()) {
        Task next = std::move(here.turns.front().second);
        here.turns.pop_front();
        next();
      }
    });
  });
}

void ZkEnsemble::count_anew(int leader, std::int64_t session) {
  Server& here = servers_[leader];
  const auto found = here.counts.find(session);
  if (found == here.counts.end() || found->second.closing) return;
  const Time until = here.clock.now() + setup_.timeout;
  Time expires = until;
  if (setup_.quirks.on(Quirk::zk_touch_table)) {
    const auto tick = Nanos(setup_.tick).count();
    expires = Time(Nanos((until.time_since_epoch().count() / tick + 1) * tick));
  }
  found->second.expires = std::max(found->second.expires, expires);
}

Time ZkEnsemble::counted_until(std::int64_t session) const {
  const int leads = leader();
  if (leads < 0) return internal::kNever;
  const auto found = servers_[leads].counts.find(session);
  if (found == servers_[leads].counts.end()) return Time{};
  return servers_[leads].clock.world_time(found->second.expires);
}

void ZkEnsemble::half_tick(int leader, std::uint64_t life) {
  Server& here = servers_[leader];
  if (here.life != life || here.role != Role::leading) return;
  const Time now = here.clock.now();
  int heard = 1;
  const Nanos patience = Nanos(setup_.tick) * setup_.sync_limit;
  for (int other = 0; other < kServers; ++other) {
    if (other == leader) continue;
    if (now - std::max(here.answered[other], here.began) <= patience) ++heard;
    if (!follows(other, leader)) continue;
    send(leader, other, [this, leader, other] {
      Server& follower = servers_[other];
      follower.heard = follower.clock.now();
      auto touched = std::exchange(follower.touched, {});
      send(other, leader, [this, leader, other, touched = std::move(touched)] {
        servers_[leader].answered[other] = servers_[leader].clock.now();
        for (const auto session : touched) count_anew(leader, session);
      });
    });
  }
  if (heard * 2 <= kServers) {
    look(leader);
    return;
  }
  world_.at(here.clock.world_time(now + Nanos(setup_.tick) / 2),
            [this, alive = alive_, leader, life] {
              if (*alive) at_server(leader, [this, leader, life] { half_tick(leader, life); });
            });
}

void ZkEnsemble::full_tick(int leader, std::uint64_t life) {
  Server& here = servers_[leader];
  if (here.life != life || here.role != Role::leading) return;
  const Time now = here.clock.now();
  std::vector<std::int64_t> due;
  Time next = now + setup_.tick;
  for (const auto& [session, count] : here.counts) {
    if (count.closing) continue;
    if (count.expires <= now) {
      due.push_back(session);
    } else {
      next = std::min(next, count.expires);
    }
  }
  for (const auto session : due) {
    Txn txn;
    txn.kind = Txn::Kind::close;
    txn.session = session;
    propose(leader, txn);
  }
  const Time when = std::max(here.clock.world_time(next), world_.now() + 10us);
  world_.at(when, [this, alive = alive_, leader, life] {
    if (*alive) at_server(leader, [this, leader, life] { full_tick(leader, life); });
  });
}

}  // namespace baton::sim
