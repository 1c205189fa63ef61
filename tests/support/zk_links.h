// The network between the servers of an ensemble.
#pragma once

#include "support/proxy.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace baton::test {

// All traffic between two servers: quorum and election connections, whoever opened them. What each
// fault does to a connection is said at Proxy. All calls from any thread; copies mean the same.
class ZkLink {
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
  friend class ZkLinks;
  ZkLink(Proxy& proxy, int a, int b) : proxy_(&proxy), a_(a), b_(b) {}
  Direction direction(int from) const;

  Proxy* proxy_;
  int a_;  // sends kToServer
  int b_;
};

// One proxy per pair of servers. Each server's configuration names ports of these proxies for the
// others; with reconfigEnabled=false a server does not take over the leader's list.
class ZkLinks {
 public:
  struct Ports {
    std::uint16_t quorum = 0;
    std::uint16_t election = 0;
  };
  // The ports on which the servers really listen, by index.
  explicit ZkLinks(const std::vector<Ports>& servers);

  // Where server `from` finds server `to`.
  Ports entry(int from, int to) const { return entries_.at({from, to}); }
  ZkLink link(int a, int b) const;
  std::vector<ZkLink> links_of(int server) const;
  void heal_all() const;

 private:
  std::map<std::pair<int, int>, std::unique_ptr<Proxy>> proxies_;  // smaller index first
  std::map<std::pair<int, int>, Ports> entries_;
};

}  // namespace baton::test
