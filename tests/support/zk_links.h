// The network between the servers of a ZooKeeper ensemble.
#pragma once

#include "support/server_links.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace baton::test {

// Quorum and election connections. Each server's configuration names ports of these proxies for the
// others; with reconfigEnabled=false a server does not take over the leader's list.
class ZkLinks : public ServerLinks {
 public:
  struct Ports {
    std::uint16_t quorum = 0;
    std::uint16_t election = 0;
  };
  // The ports on which the servers really listen, by index.
  explicit ZkLinks(const std::vector<Ports>& servers);

  // Where server `from` finds server `to`.
  Ports entry(int from, int to) const { return entries_.at({from, to}); }

 private:
  std::map<std::pair<int, int>, Ports> entries_;
};

}  // namespace baton::test
