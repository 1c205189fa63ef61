// Which ZooKeeper servers have other data than their leader, as they notice themselves.
#pragma once

#include "chaos/cluster/cluster.h"
#include "support/zk_server.h"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace baton::chaos {

// With each change the leader sends the digest of its own data; a follower that comes to another
// one counts it. One that reads an untidy log counts too, and may be right in the end: only who
// goes on counting while it serves has other data. Needs changes all the time; writes that fail are
// none.
class ZkAudit {
 public:
  explicit ZkAudit(test::ZkEnsemble& servers);

  // To be called again and again; it takes a few calls to find one.
  std::vector<Stray> look();

 private:
  // What a server said of its digests in one life.
  struct Said {
    pid_t pid = -1;
    std::chrono::nanoseconds since{};
    std::optional<std::int64_t> mismatches;  // when last asked, if it served then
    int in_a_row = 0;                        // times that it was asked, and they had become more
  };
  bool astray(int i);

  test::ZkEnsemble& servers_;
  std::vector<Said> said_;
};

}  // namespace baton::chaos
