// The network between the servers of a cluster. Tests cause faults on it.
#pragma once

#include "support/proxy.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace baton::test {

// All traffic between two servers, in connections that either server opened. Proxy describes what
// each fault does to a connection. Any thread may make any call; copies refer to the same link.
class ServerLink {
 public:
  // `from`: one of the two servers. The fault acts on what this server sends to the other. Without
  // `from`: both directions.
  void stall(int from) const { proxy_->stall(direction(from)); }
  void stall() const;
  void blackhole(int from) const { proxy_->blackhole(direction(from)); }
  void blackhole() const;
  void resume(int from) const { proxy_->resume(direction(from)); }
  void delay(int from, std::chrono::milliseconds time) const {
    proxy_->delay(direction(from), time);
  }
  void cut() const { proxy_->cut(); }
  void reset() const { proxy_->reset_connections(); }
  void heal() const { proxy_->heal(); }

  // The bytes that `from` has sent to the other server, delivered or not.
  std::uint64_t bytes(int from) const { return proxy_->bytes(direction(from)); }
  int connections() const { return proxy_->connections(); }

 private:
  friend class ServerLinks;
  ServerLink(Proxy& proxy, int a, int b) : proxy_(&proxy), a_(a), b_(b) {}
  Direction direction(int from) const;

  Proxy* proxy_;
  int a_;  // what this server sends has the direction kToServer
  int b_;
};

// One proxy for each pair of servers. A derived class makes each server connect to the proxy
// instead of the other server.
class ServerLinks {
 public:
  ServerLink link(int a, int b) const;
  std::vector<ServerLink> links_of(int server) const;
  void heal_all() const;

 protected:
  explicit ServerLinks(int servers);
  ~ServerLinks() = default;
  ServerLinks(const ServerLinks&) = delete;
  ServerLinks& operator=(const ServerLinks&) = delete;

  Proxy& between(int a, int b) const;
  // Whether a connection from server `from` to server `to` is `reversed` for their proxy.
  static bool reversed(int from, int to) { return from > to; }

 private:
  std::map<std::pair<int, int>, std::unique_ptr<Proxy>> proxies_;  // key: the smaller index first
};

}  // namespace baton::test
