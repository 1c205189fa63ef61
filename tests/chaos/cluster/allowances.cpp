// Bugs of stores that break promises of ours, by upstream's issue number. docs/stores says what
// each does to a lock. Nothing else is excused.
#include "chaos/cluster/verdict.h"

namespace baton::chaos {

using namespace std::chrono_literals;

const std::vector<Allowance>& known_bugs() {
  // A leader that was stopped and goes on revokes leases that live: the store frees a lock before
  // its time. Until the holder notices, within a second, two locks may be valid. All versions of
  // etcd but a few do it, so no version is named here: Kind::expired is the proof.
  static const std::vector<Allowance> all{
      {"etcd ", "etcd#15247", Checker::early_loss, "pause leader", 5s},
      {"etcd ", "etcd#15247", Checker::overlap, "pause leader", 5s},
      // The same for a waiter that was first in line when that happened and heard of it late: it is
      // granted after those behind it, like one that is evicted between the grant and its answer.
      {"etcd ", "etcd#15247", Checker::tokens, "pause leader", 5s},
      {"etcd ", "etcd#15247", Checker::fifo, "pause leader", 5s},
      // A server that was behind, caught up and was restarted has lost what it caught up with. It
      // shows entries that are gone and misses newer ones: a client that connects to it is told
      // that its entry is not there.
      {"zk 3.8.0", "ZOOKEEPER-4785", Checker::early_loss, "", 5s},
  };
  return all;
}

}  // namespace baton::chaos
