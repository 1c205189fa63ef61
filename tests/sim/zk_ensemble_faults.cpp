// The faults of a ZkEnsemble, the actions of an operator, and counters for the checks.
#include "zk_ensemble.h"

#include <algorithm>
#include <utility>

namespace baton::sim {

using zk::Request;

void ZkEnsemble::stop(int server) { servers_[server].stopped = true; }

void ZkEnsemble::resume(int server) {
  Server& here = servers_[server];
  here.stopped = false;
  // A real server's threads go on in an unknown order. Here the tasks run in the order in which
  // they arrived.
  auto inbox = std::exchange(here.inbox, {});
  for (auto& task : inbox) at_server(server, std::move(task));
}

void ZkEnsemble::restart(int server) {
  Server& here = servers_[server];
  resume(server);
  here.down = true;
  look(server);
  world_.after(world_.span(std::chrono::milliseconds(200), Nanos(setup_.tick) * 2),
               [this, alive = alive_, server] {
                 if (*alive) servers_[server].down = false;
               });
}

void ZkEnsemble::heal() {
  healed_ = true;
  for (int a = 0; a < kServers; ++a) {
    servers_[a].down = false;
    if (servers_[a].stopped) resume(a);
    for (int b = 0; b < kServers; ++b) stall(a, b, false);
  }
  elect_soon();
}

void ZkEnsemble::remove(const std::string& path) {
  const int leads = leader();
  if (leads < 0) return;
  Txn txn;
  txn.server = -1;
  txn.request = {zk::Request::Kind::remove, path, {}};
  propose(leads, txn);
}

void ZkEnsemble::reap() {
  const std::string path = truth().reapable();
  if (!path.empty()) remove(path);
}

void ZkEnsemble::end_session(std::int64_t session) {
  const int leads = leader();
  if (leads < 0 || !servers_[leads].counts.contains(session)) return;
  forced_sessions_.insert(session);
  Txn txn;
  txn.kind = Txn::Kind::close;
  txn.server = -1;
  txn.session = session;
  propose(leads, txn);
}

bool ZkEnsemble::agree() const {
  for (const auto& server : servers_) {
    if (server.tree.zxid == truth().zxid && server.tree.nodes != truth().nodes) return false;
  }
  return true;
}

std::size_t ZkEnsemble::watches() const {
  std::size_t all = 0;
  for (const auto& server : servers_) {
    for (const auto& [id, conn] : server.conns) all += conn->watches.size();
  }
  return all;
}

std::size_t ZkEnsemble::sessions() const {
  const int leads = leader();
  return leads < 0 ? 0 : servers_[leads].counts.size();
}

}  // namespace baton::sim
