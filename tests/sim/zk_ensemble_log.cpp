// The log of a ZkEnsemble, and the elections of its leader.
#include "zk_ensemble.h"

#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <utility>

namespace baton::sim {

using namespace std::chrono_literals;
using zk::FakeNode;
using zk::Reply;
using zk::Request;

ZkEnsemble::ZkEnsemble(World& world, Setup setup) : world_(world), setup_(std::move(setup)) {
  for (int i = 0; i < kServers; ++i) servers_.emplace_back(SimClock(world, setup_.rates[i]));
  elect();
}

ZkEnsemble::~ZkEnsemble() { *alive_ = false; }

void ZkEnsemble::preset(const std::string& directory, std::int32_t next_number) {
  for (auto& server : servers_) {
    std::string path;
    for (std::size_t slash = 0; slash != std::string::npos;) {
      slash = directory.find('/', slash + 1);
      path = directory.substr(0, slash);
      server.tree.nodes[path].kind = FakeNode::Kind::container;
    }
    server.tree.nodes[path].next_number = next_number;
  }
}

// ---- messages between servers

void ZkEnsemble::at_server(int server, Task task) {
  if (servers_[server].stopped) {
    servers_[server].inbox.push_back(std::move(task));
  } else {
    task();
  }
}

void ZkEnsemble::send(int from, int to, Task task) {
  if (to < 0) return;
  Task guarded = [this, from, to, from_life = servers_[from].life, to_life = servers_[to].life,
                  task = std::move(task)]() mutable {
    // A server that has changed its role has closed its connections.
    if (servers_[from].life != from_life || servers_[to].life != to_life) return;
    if (from == to || follows(from, to) || follows(to, from)) task();
  };
  if (from == to) {
    guarded();
    return;
  }
  auto& queue = links_[from][to].queue;
  const bool late = !healed_ && setup_.quirks.on(Quirk::zk_lagging_reads) && world_.chance(0.02);
  Time due =
      world_.now() + (late ? world_.span(1ms, Nanos(setup_.tick) / 4) : world_.span(50us, 1ms));
  if (!queue.empty()) due = std::max(due, queue.back().first);
  queue.emplace_back(due, std::move(guarded));
  world_.at(due, [this, alive = alive_, from, to] {
    if (*alive) pump(from, to);
  });
}

void ZkEnsemble::pump(int from, int to) {
  Link& link = links_[from][to];
  while (!link.stalled && !link.queue.empty() && link.queue.front().first <= world_.now()) {
    Task task = std::move(link.queue.front().second);
    link.queue.pop_front();
    at_server(to, std::move(task));
  }
}

void ZkEnsemble::stall(int from, int to, bool stalled) {
  links_[from][to].stalled = stalled;
  if (!stalled) pump(from, to);
}

bool ZkEnsemble::connected(int a, int b) const {
  return !links_[a][b].stalled && !links_[b][a].stalled;
}

// The epochs must be equal, because `leader` may have led in an earlier epoch.
bool ZkEnsemble::follows(int server, int leader) const {
  return server != leader && servers_[server].leader == leader &&
         servers_[leader].role == Role::leading && servers_[server].epoch == servers_[leader].epoch;
}

// ---- the log

void ZkEnsemble::propose(int leader, Txn txn) {
  Server& here = servers_[leader];
  txn.zxid = ++here.next_zxid;
  if (txn.kind == Txn::Kind::close) {
    const auto count = here.counts.find(txn.session);
    if (count != here.counts.end()) count->second.closing = true;
  }
  const auto shared = std::make_shared<const Txn>(std::move(txn));
  here.log.push_back(shared);
  here.proposals.push_back({shared, {leader}, {}});
  for (int other = 0; other < kServers; ++other) {
    if (!follows(other, leader)) continue;
    send(leader, other, [this, leader, other, shared] {
      servers_[other].log.push_back(shared);
      send(other, leader,
           [this, leader, other, zxid = shared->zxid] { acked(leader, other, zxid); });
    });
  }
}

void ZkEnsemble::acked(int leader, int by, std::uint64_t zxid) {
  Server& here = servers_[leader];
  for (auto& proposal : here.proposals) {
    if (proposal.txn->zxid <= zxid) proposal.acks.insert(by);
  }
  while (!here.proposals.empty() && here.proposals.front().acks.size() * 2 > kServers) {
    Proposal done = std::move(here.proposals.front());
    here.proposals.pop_front();
    const std::size_t count = here.applied + 1;
    apply_to(leader, count);
    for (int other = 0; other < kServers; ++other) {
      if (!follows(other, leader)) continue;
      send(leader, other, [this, other, count] {
        in_turn(other, [this, other, count] { apply_to(other, count); });
      });
    }
    for (auto& task : done.after) task();
  }
}

void ZkEnsemble::apply_to(int server, std::size_t count) {
  Server& here = servers_[server];
  while (here.applied < std::min(count, here.log.size())) {
    const TxnPtr txn = here.log[here.applied++];
    apply(server, *txn);
    if (here.tree.zxid > servers_[truth_].tree.zxid) truth_ = server;
  }
}

void ZkEnsemble::apply(int server, const Txn& txn) {
  Server& here = servers_[server];
  auto& tree = here.tree;
  tree.zxid = txn.zxid - 1;  // the change below adds one
  zk::Reply reply;
  const auto gone = [&](const std::string& path) {
    tree.zxid = txn.zxid - 1;
    const int code = tree.erase(path);
    if (code == ZOK) tell(here, zk::NodeEvent::gone, path);
    return code;
  };
  if (txn.kind == Txn::Kind::request && txn.session != 0 && here.closed.contains(txn.session)) {
    reply.code = ZSESSIONEXPIRED;
  } else if (txn.kind == Txn::Kind::request) {
    switch (txn.request.kind) {
      case zk::Request::Kind::create_entry:
        reply.code = tree.create(txn.request, FakeNode::Kind::entry, txn.session, 0, reply);
        break;
      case zk::Request::Kind::create_container:
        reply.code = tree.create(txn.request, FakeNode::Kind::container, 0, 0, reply);
        break;
      case zk::Request::Kind::create_permanent:
        reply.code = tree.create(txn.request, FakeNode::Kind::permanent, 0, 0, reply);
        break;
      default:
        reply.code = gone(txn.request.path);
    }
  } else if (txn.kind == Txn::Kind::refuse) {
    reply.code = txn.code;
  } else if (txn.kind == Txn::Kind::close) {
    here.closed.insert(txn.session);
    here.counts.erase(txn.session);
    for (const auto& path : tree.entries_of(txn.session)) {
      if (forced_sessions_.contains(txn.session)) {
        forced_tokens_.insert(tree.find(path)->created_at);
      }
      gone(path);
    }
    const auto conns = here.conns;
    for (const auto& [id, conn] : conns) {
      if (conn->session == txn.session) hang_up(conn);
    }
  }
  tree.zxid = txn.zxid;
  if (txn.server != server) return;
  if (txn.kind == Txn::Kind::open) {
    const auto found = here.conns.find(txn.conn);
    if (found != here.conns.end() && found->second->open) {
      accept(server, found->second, txn.session, {});
    }
  } else if (txn.number != 0) {
    answer(server, txn.conn, txn.number, std::move(reply));
  }
}

// ---- elections

int ZkEnsemble::leader() const {
  for (int i = 0; i < kServers; ++i) {
    if (servers_[i].role == Role::leading && servers_[i].epoch == epoch_) return i;
  }
  return -1;
}

// The server leaves its role. Clients that are connected to it lose the connection.
void ZkEnsemble::look(int server) {
  Server& here = servers_[server];
  const bool led = here.role == Role::leading;
  world_.note("server " + std::to_string(server) + " looks for a leader");
  here.role = Role::looking;
  here.leader = -1;
  ++here.life;
  here.touched.clear();
  here.turns.clear();
  here.counts.clear();
  here.proposals.clear();
  const auto conns = here.conns;
  for (const auto& [id, conn] : conns) hang_up(conn);
  for (int other = 0; other < kServers; ++other) {
    links_[server][other].queue.clear();
    links_[other][server].queue.clear();
    // A follower notices the closed connection, unless the network between the servers is cut.
    if (led && servers_[other].leader == server && connected(server, other)) look(other);
  }
  elect_soon();
}

void ZkEnsemble::elect_soon() {
  if (std::exchange(electing_, true)) return;
  world_.after(world_.span(50ms, 600ms), [this, alive = alive_] {
    if (!*alive) return;
    electing_ = false;
    elect();
  });
}

void ZkEnsemble::elect() {
  const auto well = [this](int i) { return !servers_[i].stopped && !servers_[i].down; };
  bool anybody_looks = false;
  for (int i = 0; i < kServers; ++i) {
    if (servers_[i].role != Role::looking) continue;
    const int leads = leader();
    if (leads >= 0 && well(i) && well(leads) && connected(i, leads)) follow(i, leads);
    anybody_looks |= servers_[i].role == Role::looking;
  }
  if (!anybody_looks) return;
  // Two servers that look for a leader and reach each other are a majority. The server with the
  // newest log leads.
  int best = -1;
  for (int i = 0; i < kServers; ++i) {
    if (servers_[i].role != Role::looking || !well(i)) continue;
    int others = 0;
    for (int j = 0; j < kServers; ++j) {
      others += j != i && servers_[j].role == Role::looking && well(j) && connected(i, j) ? 1 : 0;
    }
    if (others == 0) continue;
    const auto newest = [this](int s) {
      return servers_[s].log.empty() ? 0 : servers_[s].log.back()->zxid;
    };
    if (best < 0 || newest(i) > newest(best)) best = i;
  }
  if (best >= 0) {
    Server& chosen = servers_[best];
    chosen.role = Role::leading;
    chosen.epoch = ++epoch_;
    world_.note("server " + std::to_string(best) + " leads");
    chosen.leader = best;
    ++chosen.life;
    chosen.next_zxid = (epoch_ << 32U);
    chosen.began = chosen.clock.now();
    chosen.answered = {};
    chosen.proposals.clear();
    apply_to(best, chosen.log.size());
    // The new leader begins to count every session that it knows.
    chosen.counts.clear();
    for (const auto& txn : chosen.log) {
      if (txn->kind == Txn::Kind::open && !chosen.closed.contains(txn->session)) {
        chosen.counts[txn->session].owner = -1;
      }
    }
    for (auto& [session, count] : chosen.counts) count_anew(best, session);
    for (int j = 0; j < kServers; ++j) {
      if (j != best && servers_[j].role == Role::looking && well(j) && connected(best, j)) {
        follow(j, best);
      }
    }
    half_tick(best, chosen.life);
    full_tick(best, chosen.life);
  }
  elect_soon();
}

// The server takes over the leader's log.
void ZkEnsemble::follow(int server, int leader) {
  Server& here = servers_[server];
  const Server& lead = servers_[leader];
  here.role = Role::following;
  world_.note("server " + std::to_string(server) + " follows " + std::to_string(leader));
  here.leader = leader;
  here.epoch = lead.epoch;
  ++here.life;
  here.turns.clear();
  here.heard = here.clock.now();
  here.log = lead.log;
  apply_to(server, lead.applied);
  for (auto& proposal : servers_[leader].proposals) {
    send(server, leader,
         [this, leader, server, zxid = proposal.txn->zxid] { acked(leader, server, zxid); });
  }
  watch_leader(server, here.life);
}

void ZkEnsemble::watch_leader(int follower, std::uint64_t life) {
  const Server& here = servers_[follower];
  if (here.life != life) return;
  const Time due = here.heard + Nanos(setup_.tick) * setup_.sync_limit;
  if (here.clock.now() >= due) {
    look(follower);
    return;
  }
  const Time when = std::max(here.clock.world_time(due), world_.now() + 10us);
  world_.at(when, [this, alive = alive_, follower, life] {
    if (*alive) at_server(follower, [this, follower, life] { watch_leader(follower, life); });
  });
}

}  // namespace baton::sim
