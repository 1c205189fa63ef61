// Bugs of stores that break promises of ours, by upstream's issue number. docs/stores/etcd.md says
// what each does to a lock. Nothing else is allowed anything.
#include "chaos/cluster/verdict.h"

namespace baton::chaos {

using namespace std::chrono_literals;

const std::vector<Allowance>& known_bugs() {
  // A leader that was stopped and goes on revokes leases that live: the store frees a lock before
  // its time. Until the holder notices, within a second, two may believe.
  static const std::vector<Allowance> all{
      {"etcd 3.4.23", "etcd#15247", Checker::early_loss, "pause leader", 5s},
      {"etcd 3.4.23", "etcd#15247", Checker::overlap, "pause leader", 5s},
      // The same for one who was first in line when that happened, and heard of it late: then it
      // holds after those behind it, as one who is evicted between the grant and its answer.
      {"etcd 3.4.23", "etcd#15247", Checker::tokens, "pause leader", 5s},
      {"etcd 3.4.23", "etcd#15247", Checker::fifo, "pause leader", 5s},
      // A server that was behind, caught up and was restarted has lost what it caught up with, and
      // shows entries that are gone, and not those that came meanwhile: whoever comes to it is told
      // that its entry is not there.
      {"zk 3.8.0", "ZOOKEEPER-4785", Checker::early_loss, "", 5s},
  };
  return all;
}

}  // namespace baton::chaos
