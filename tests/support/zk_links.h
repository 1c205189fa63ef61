// The network between the servers of a ZooKeeper ensemble. Tests cause faults on it.
#pragma once

#include "support/server_links.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace baton::test {

// Proxies for the quorum and election connections. The configuration of each server names ports of
// these proxies for the other servers. With reconfigEnabled=false a server does not replace its
// configuration with the leader's list.
class ZkLinks : public ServerLinks {
 public:
  struct Ports {
    std::uint16_t quorum = 0;
    std::uint16_t election = 0;
  };
  // The ports on which the servers listen, by index.
  explicit ZkLinks(const std::vector<Ports>& servers);

  // The ports on which server `from` reaches server `to`.
  Ports entry(int from, int to) const { return entries_.at({from, to}); }

 private:
  std::map<std::pair<int, int>, Ports> entries_;
};

}  // namespace baton::test
