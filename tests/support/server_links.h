// The network between the servers of a cluster.
#pragma once

#include "support/proxy.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace baton::test {

// All traffic between two servers, whoever opened the connections. What each fault does to a
// connection is said at Proxy. All calls from any thread; copies mean the same.
class ServerLink {
 public:
  // `from`: one of the two; what it sends to the other. Without: both directions.
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

  // What `from` has sent to the other, delivered or not.
  std::uint64_t bytes(int from) const { return proxy_->bytes(direction(from)); }
  int connections() const { return proxy_->connections(); }

 private:
  friend class ServerLinks;
  ServerLink(Proxy& proxy, int a, int b) : proxy_(&proxy), a_(a), b_(b) {}
  Direction direction(int from) const;

  Proxy* proxy_;
  int a_;  // sends kToServer
  int b_;
};

// One proxy per pair of servers. How a server comes to it instead of to the other server depends on
// the store: derive from this.
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
  // A connection that this one opens to the other is `reversed` for their proxy.
  static bool reversed(int from, int to) { return from > to; }

 private:
  std::map<std::pair<int, int>, std::unique_ptr<Proxy>> proxies_;  // smaller index first
};

}  // namespace baton::test
