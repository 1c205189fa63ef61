// ZooKeeper: as many real servers as BATON_RIG_SERVERS says, or the ensemble that BATON_TEST_ZK
// names. One server: a cut closes connections. Three: it is silence.
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
  options.max_session = 6s;  // also for the default of 10 s: crashes are waited for
  return options;
}

// Sessions that own nodes below this path. Asked of all servers: a node is sure to be seen only at
// the one whose client made it, others may lag behind.
std::vector<std::int64_t> sessions_below(const std::vector<std::string>& hosts,
                                         const std::string& path) {
  // Whoever stands last comes first: ended one after the other, nobody is granted meanwhile.
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

  // The sessions that have an entry here.
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
