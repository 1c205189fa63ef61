// Finds a ZooKeeper server whose data differs from the others, from what the servers themselves
// report.
#pragma once

#include "chaos/cluster/cluster.h"
#include "support/zk_server.h"

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

namespace baton::chaos {

// With each change the leader sends the digest of its own data. A follower that computes another
// digest counts a mismatch. A server may also count some while it reads its log after a restart,
// although its data is right in the end. So only a count that keeps growing while the server serves
// is a proof. If one follower alone counts, its data is wrong. If all followers count, the leader's
// data is wrong; two wrong followers look the same. A server that has read a snapshot and has lost
// exactly the change at which it would compare is not found.
//
// There is a result only if all servers serve the same leader without interruption. The data must
// change continuously; writes that fail do not count.
class ZkAudit {
 public:
  explicit ZkAudit(test::ZkEnsemble& servers);

  // Call this repeatedly, less than a second apart. It needs several calls to find a server.
  std::optional<Stray> look();

 private:
  // What a server reported about its digests during the life of one process.
  struct Said {
    pid_t pid = -1;
    std::chrono::nanoseconds since{};        // start of the first of the successive processes that
                                             // counted a mismatch
    bool any = false;                        // this process has counted a mismatch
    std::optional<std::int64_t> mismatches;  // at the last look, if all servers served then
    int in_a_row = 0;                        // in how many successive looks the count had grown
  };
  struct Answer {
    bool leads = false;
    std::int64_t mismatches = 0;
  };
  std::optional<Answer> ask(int i);

  test::ZkEnsemble& servers_;
  std::vector<Said> said_;
  int leader_ = -1;  // the leader to which `in_a_row` belongs
};

}  // namespace baton::chaos
