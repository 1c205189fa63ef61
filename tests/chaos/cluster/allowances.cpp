// Bugs of stores that break baton's promises, by the issue number of the store's project.
// docs/stores describes what each bug does to a lock. Nothing else is excused.
#include "chaos/cluster/verdict.h"

namespace baton::chaos {

using namespace std::chrono_literals;

const std::vector<Allowance>& known_bugs() {
  // An etcd leader that was stopped and continues may revoke leases of live clients. The store then
  // frees a lock too early. Until the holder notices, within a second, two locks may be valid.
  // Almost all versions of etcd do it, so no version is named here; Kind::expired is the proof.
  static const std::vector<Allowance> all{
      {"etcd ", "etcd#15247", Checker::early_loss, "pause leader", 5s},
      {"etcd ", "etcd#15247", Checker::overlap, "pause leader", 5s},
      // The same for a waiter that was first in line at that moment and learned of it late: it is
      // granted after those behind it, like a waiter that is evicted between the grant and its
      // answer.
      {"etcd ", "etcd#15247", Checker::tokens, "pause leader", 5s},
      {"etcd ", "etcd#15247", Checker::fifo, "pause leader", 5s},
      // A server that was behind, caught up and was restarted has lost the data that it caught up
      // with. It shows entries that are gone and misses newer ones. It tells a client that connects
      // to it that its entry is missing.
      {"zk 3.8.0", "ZOOKEEPER-4785", Checker::early_loss, "", 5s},
  };
  return all;
}

}  // namespace baton::chaos
