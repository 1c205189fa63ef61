// Which ZooKeeper server has other data than the others, as they notice themselves.
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
// goes on counting while it serves has other data. A follower that counts alone is wrong itself; if
// all followers count, it is the leader. (Two that are wrong at once are not told from that. Nor is
// one found that has read a snapshot and lost the very change at which it would compare.)
//
// Nobody is judged unless all serve the same leader, all the time. Needs changes all the time;
// writes that fail are none.
class ZkAudit {
 public:
  explicit ZkAudit(test::ZkEnsemble& servers);

  // To be called again and again, less than a second apart; it takes several calls to find one.
  std::optional<Stray> look();

 private:
  // What a server said of its digests in one life.
  struct Said {
    pid_t pid = -1;
    std::chrono::nanoseconds since{};  // began the first of the lives, up to this, that counted any
    bool any = false;                  // this one has
    std::optional<std::int64_t> mismatches;  // when last asked, if all served then
    int in_a_row = 0;                        // times that it was asked, and they had become more
  };
  struct Answer {
    bool leads = false;
    std::int64_t mismatches = 0;
  };
  std::optional<Answer> ask(int i);

  test::ZkEnsemble& servers_;
  std::vector<Said> said_;
  int leader_ = -1;  // under which `in_a_row` was counted
};

}  // namespace baton::chaos
