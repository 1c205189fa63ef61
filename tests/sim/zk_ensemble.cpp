// Connections and requests of a ZkEnsemble.
#include "zk_ensemble.h"

#include "bugs.h"

#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <utility>

namespace baton::sim {

using namespace std::chrono_literals;
using zk::Reply;
using zk::Request;

ZkConnPtr ZkEnsemble::connect(int server, ZkCaller& caller, const ZkHello& hello) {
  auto conn = std::make_shared<ZkConn>();
  conn->server = server;
  conn->id = next_conn_++;
  conn->caller = &caller;
  at_server(server, [this, server, conn, hello] {
    Server& here = servers_[server];
    if (!conn->open) return;
    const bool behind = hello.seen > (here.applied == 0 ? 0 : here.log[here.applied - 1]->zxid);
    if (here.down || here.role == Role::looking || behind) {
      hang_up(conn);
      return;
    }
    if (hello.session != 0) {
      // If the session has an older connection to this server, that connection is closed at once.
      const auto conns = here.conns;
      for (const auto& [id, old] : conns) {
        if (old->session == hello.session) hang_up(old);
      }
    }
    here.conns.emplace(conn->id, conn);
    if (hello.session != 0) {
      revalidate(server, conn, hello);
      return;
    }
    Txn txn;
    txn.kind = Txn::Kind::open;
    txn.session = next_session_++;
    txn.server = server;
    txn.conn = conn->id;
    const int leader = here.leader;
    send(server, leader, [this, leader, txn] { lead_request(leader, txn); });
  });
  return conn;
}

void ZkEnsemble::revalidate(int server, const ZkConnPtr& conn, const ZkHello& hello) {
  const int leader = servers_[server].leader;
  send(server, leader, [this, server, leader, conn, hello] {
    auto& counts = servers_[leader].counts;
    const auto found = counts.find(hello.session);
    const bool valid = found != counts.end() && !found->second.closing;
    if (valid) {
      count_anew(leader, hello.session);
      found->second.owner = server;
    }
    send(leader, server, [this, server, conn, hello, valid] {
      if (!conn->open) return;
      if (valid) {
        accept(server, conn, hello.session, hello);
      } else {
        conn->open = false;
        servers_[server].conns.erase(conn->id);
        if (conn->caller != nullptr) conn->caller->expired();
      }
    });
  });
}

void ZkEnsemble::accept(int server, const ZkConnPtr& conn, std::int64_t session,
                        const ZkHello& hello) {
  Server& here = servers_[server];
  conn->session = session;
  if (conn->caller != nullptr) conn->caller->accepted(session);
  // The client has sent its watches. The server reports what happened since then, in order.
  conn->watches = hello.watches;
  std::multimap<std::uint64_t, std::pair<zk::NodeEvent, std::string>> news;
  for (const auto& path : hello.watches) {
    const auto* const node = here.tree.find(path);
    if (node == nullptr) {
      news.emplace(here.tree.gone_at[path], std::pair(zk::NodeEvent::gone, path));
    } else if (node->changed_at > hello.seen) {
      news.emplace(node->changed_at, std::pair(zk::NodeEvent::changed, path));
    }
  }
  for (const auto& [zxid, event] : news) {
    if (conn->watches.erase(event.second) == 0 || conn->caller == nullptr) continue;
    conn->caller->news(event.first, event.second);
  }
}

void ZkEnsemble::hang_up(const ZkConnPtr& conn) {
  if (!std::exchange(conn->open, false)) return;
  servers_[conn->server].conns.erase(conn->id);
  if (conn->caller != nullptr) conn->caller->hung_up();
}

void ZkEnsemble::cut(const ZkConnPtr& conn) {
  conn->open = false;
  conn->caller = nullptr;
  servers_[conn->server].conns.erase(conn->id);
}

// ---- requests

void ZkEnsemble::touch(int server, std::int64_t session) {
  Server& here = servers_[server];
  if (here.role == Role::leading) {
    count_anew(server, session);
  } else if (setup_.quirks.on(Quirk::zk_touch_table)) {
    here.touched.insert(session);
  } else if (here.role == Role::following) {
    send(server, here.leader,
         [this, leader = here.leader, session] { count_anew(leader, session); });
  }
}

void ZkEnsemble::ping(const ZkConnPtr& conn) {
  at_server(conn->server, [this, conn] {
    if (!conn->open || conn->session == 0) return;
    touch(conn->server, conn->session);
    if (conn->caller != nullptr) conn->caller->pong();
  });
}

void ZkEnsemble::goodbye(const ZkConnPtr& conn) {
  at_server(conn->server, [this, conn] {
    const Server& here = servers_[conn->server];
    if (!conn->open || conn->session == 0 || here.leader < 0) return;
    const int leader = here.leader;
    send(conn->server, leader, [this, leader, session = conn->session] {
      Txn txn;
      txn.kind = Txn::Kind::close;
      txn.session = session;
      if (servers_[leader].counts.contains(session)) propose(leader, txn);
    });
  });
}

void ZkEnsemble::ask(const ZkConnPtr& conn, zk::Request request) {
  at_server(conn->server, [this, conn, request = std::move(request)]() mutable {
    if (!conn->open || conn->session == 0) return;
    touch(conn->server, conn->session);
    conn->asked.push_back({std::move(request), next_number_++, {}});
    const auto kind = conn->asked.back().request.kind;
    const bool local = kind == zk::Request::Kind::children || kind == zk::Request::Kind::get ||
                       kind == zk::Request::Kind::get_watch || kind == zk::Request::Kind::unwatch;
    if (!local) forward(conn->server, conn, conn->asked.back());
    advance(servers_[conn->server], *conn);
  });
}

// Answers requests in their order: a read waits for the writes before it.
void ZkEnsemble::advance(Server& server, ZkConn& conn) {
  while (conn.open && !conn.asked.empty()) {
    auto& next = conn.asked.front();
    zk::Reply reply;
    switch (next.request.kind) {
      case zk::Request::Kind::children:
      case zk::Request::Kind::get:
      case zk::Request::Kind::get_watch:
        reply.code = zk::fake_read(server.tree.nodes, next.request, reply);
        if (seeded(Bug::check_then_watch) && next.request.kind == zk::Request::Kind::get_watch &&
            reply.code == ZNONODE) {
          reply.code = ZOK;
        }
        if (reply.code == ZOK && next.request.kind == zk::Request::Kind::get_watch) {
          conn.watches.insert(next.request.path);
        }
        break;
      case zk::Request::Kind::unwatch:
        reply.code = conn.watches.erase(next.request.path) == 0 ? ZNOWATCHER : ZOK;
        break;
      default:
        if (!next.reply) return;
        reply = std::move(*next.reply);
    }
    reply.status = zk::status_of(reply.code);
    conn.asked.pop_front();
    if (conn.caller != nullptr) conn.caller->reply(std::move(reply), server.tree.zxid);
  }
}

void ZkEnsemble::forward(int server, const ZkConnPtr& conn, const ZkConn::Asked& asked) {
  const int leader = servers_[server].leader;
  if (asked.request.kind == zk::Request::Kind::sync) {
    send(server, leader, [this, leader, server, id = conn->id, number = asked.number] {
      lead_sync(leader, server, id, number);
    });
    return;
  }
  Txn txn;
  txn.session = conn->session;
  txn.request = asked.request;
  txn.server = server;
  txn.conn = conn->id;
  txn.number = asked.number;
  send(server, leader, [this, leader, txn = std::move(txn)] { lead_request(leader, txn); });
}

void ZkEnsemble::lead_request(int leader, const Txn& asked) {
  Txn txn = asked;
  Server& here = servers_[leader];
  if (txn.kind == Txn::Kind::open) {
    here.counts[txn.session].owner = txn.server;
    count_anew(leader, txn.session);
  } else {
    const auto count = here.counts.find(txn.session);
    if (count == here.counts.end() || count->second.closing) {
      txn.kind = Txn::Kind::refuse;
      txn.code = ZSESSIONEXPIRED;
    } else if (count->second.owner != txn.server) {
      txn.kind = Txn::Kind::refuse;  // from the old connection of a session that has moved
      txn.code = ZSESSIONMOVED;
    }
  }
  propose(leader, std::move(txn));
}

// Answers after all proposals under way. Without proposals it answers at once and does not ask the
// followers.
void ZkEnsemble::lead_sync(int leader, int server, std::uint64_t conn, std::uint64_t number) {
  auto& proposals = servers_[leader].proposals;
  Task say = [this, leader, server, conn, number] {
    send(leader, server, [this, server, conn, number] {
      in_turn(server, [this, server, conn, number] {
        zk::Reply reply;
        reply.code = ZOK;
        answer(server, conn, number, std::move(reply));
      });
    });
  };
  if (proposals.empty()) {
    say();
  } else {
    proposals.back().after.push_back(std::move(say));
  }
}

void ZkEnsemble::answer(int server, std::uint64_t conn, std::uint64_t number, zk::Reply reply) {
  Server& here = servers_[server];
  const auto found = here.conns.find(conn);
  if (found == here.conns.end()) return;
  const auto kept = found->second;
  // An older handshake of the session arrived late at another server.
  if (reply.code == ZSESSIONMOVED) {
    hang_up(kept);
    return;
  }
  for (auto& asked : kept->asked) {
    if (asked.number == number) asked.reply = std::move(reply);
  }
  advance(here, *kept);
}

void ZkEnsemble::tell(Server& server, zk::NodeEvent news, const std::string& path) {
  for (const auto& [id, conn] : server.conns) {
    if (conn->watches.erase(path) == 0) continue;
    ++told_;
    if (conn->caller != nullptr) conn->caller->news(news, path);
  }
}

}  // namespace baton::sim
