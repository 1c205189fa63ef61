// Rig for etcd: BATON_RIG_SERVERS real servers, or the cluster that BATON_TEST_ETCD names. With one
// server a cut closes the connections. With three servers a cut drops all data but leaves the
// connections open.
#include "conformance/cluster_rig.h"
#include "support/etcd_server.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace baton::conformance {
namespace {

test::EtcdOptions etcd_options() {
  test::EtcdOptions options;
  options.servers = BATON_RIG_SERVERS;
  return options;
}

class EtcdRig final : public ClusterRig {
 public:
  EtcdRig()
      : ClusterRig("etcd://",
                   shared_hosts<test::EtcdCluster>(test::etcd_from_environment(), etcd_options()),
                   BATON_RIG_SERVERS > 1),
        store_(joined(hosts())) {
    setenv("BATON_TEST_SESSION_MS", std::to_string(kSession.count()).c_str(), 1);
  }

  // Makes the session timeout short, because tests wait for the sessions of killed processes to
  // end. Child processes get the same timeout through BATON_TEST_SESSION_MS.
  Client open(ClientOptions options) override {
    options.session_timeout = std::min(options.session_timeout, kSession);
    return Rig::open(std::move(options));
  }

  // Revokes the leases that have a key below the root of this rig. The last key of a queue comes
  // first, so that no waiter is granted the lock in between.
  void end_sessions() override {
    auto keys = store_.keys(root() + "/");
    EXPECT_FALSE(keys.empty());
    std::sort(keys.begin(), keys.end(),
              [](const auto& a, const auto& b) { return a.create_revision > b.create_revision; });
    std::set<std::int64_t> ended;
    for (const auto& key : keys) {
      if (key.lease == 0) continue;  // the record of a token base has no lease
      if (!ended.insert(key.lease).second) continue;
      EXPECT_TRUE(store_.revoke(key.lease));
    }
  }

 private:
  static constexpr milliseconds kSession = 4'000ms;

  void cut_at_answer(test::Proxy& proxy) override {
    proxy.cut_at_grpc(test::Direction::kToClient, 1, false);
  }

  test::EtcdStore store_;
};

const RigKind kRig{BATON_RIG, [] { return std::unique_ptr<Rig>(new EtcdRig); }};

BATON_CONFORMANCE(kRig, kRig);

}  // namespace
}  // namespace baton::conformance
