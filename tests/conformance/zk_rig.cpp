// Rig for ZooKeeper: BATON_RIG_SERVERS real servers, or the ensemble that BATON_TEST_ZK names. With
// one server a cut closes the connections. With three servers a cut drops all data but leaves the
// connections open.
#include "conformance/cluster_rig.h"
#include "support/zk_server.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace baton::conformance {
namespace {

test::ZkOptions zk_options() {
  test::ZkOptions options;
  options.servers = BATON_RIG_SERVERS;
  options.tick = 500ms;
  options.max_session = 6s;  // less than the default of 10 s: tests wait for sessions to end
  return options;
}

// Returns the sessions that own nodes below this path. It asks all servers, because only the server
// that made a node is certain to show it. The others may lag behind.
std::vector<std::int64_t> sessions_below(const std::vector<std::string>& hosts,
                                         const std::string& path) {
  // Sorts by the number of the entry. The last entry of a queue comes first: if the sessions end in
  // this order, no waiter is granted the lock in between.
  std::map<std::string, std::int64_t> by_number;
  for (const auto& host : hosts) {
    for (const auto& [session, nodes] :
         test::parse_dump(test::four_letter(host, "dump")).ephemerals) {
      for (const auto& node : nodes) {
        if (node.starts_with(path)) by_number[node.substr(node.rfind('-'))] = session;
      }
    }
  }
  std::vector<std::int64_t> found;
  for (auto entry = by_number.rbegin(); entry != by_number.rend(); ++entry) {
    if (std::find(found.begin(), found.end(), entry->second) == found.end()) {
      found.push_back(entry->second);
    }
  }
  return found;
}

class ZkRig final : public ClusterRig {
 public:
  ZkRig()
      : ClusterRig("zk://",
                   shared_hosts<test::ZkEnsemble>(test::zk_from_environment(), zk_options()),
                   BATON_RIG_SERVERS > 1) {}

  // Ends the sessions that have an entry below the root of this rig.
  void end_sessions() override {
    const auto sessions = sessions_below(hosts(), root() + "/");
    EXPECT_FALSE(sessions.empty());
    for (const auto session : sessions) EXPECT_TRUE(test::end_session(hosts().front(), session));
  }

 private:
  void cut_at_answer(test::Proxy& proxy) override {
    proxy.cut_at_frame(test::Direction::kToClient, 1, false, test::zk_requests);
  }
};

const RigKind kRig{BATON_RIG, [] { return std::unique_ptr<Rig>(new ZkRig); }};

BATON_CONFORMANCE(kRig, kRig);

}  // namespace
}  // namespace baton::conformance
