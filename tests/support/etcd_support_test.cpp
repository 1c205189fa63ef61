// Checks that EtcdCluster and EtcdStore do what their headers describe.
#include "support/etcd_server.h"

#include "support/eventually.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <iostream>
#include <string>

namespace baton::test {
namespace {

void say_start_time(const EtcdCluster& etcd) {
  std::cout << "[          ] " << etcd.size() << " server(s) ready after "
            << etcd.start_time().count() << " ms" << std::endl;
}

EtcdOptions three() {
  EtcdOptions options;
  options.servers = 3;
  return options;
}

class EtcdSupport : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!etcd_installed()) GTEST_SKIP() << "no etcd on this machine";
  }
};

TEST(EtcdEnvironment, NamesServersThatRunAlready) {
  const char* given = ::getenv("BATON_TEST_ETCD");
  const std::string before = given != nullptr ? given : "";
  ::setenv("BATON_TEST_ETCD", "127.0.0.1:2379,127.0.0.1:2381", 1);
  EXPECT_EQ(etcd_from_environment(), "127.0.0.1:2379,127.0.0.1:2381");
  ::setenv("BATON_TEST_ETCD", "", 1);
  EXPECT_EQ(etcd_from_environment(), std::nullopt);
  ::setenv("BATON_TEST_ETCD", before.c_str(), 1);
}

TEST_F(EtcdSupport, ABadFlagFailsAtOnceWithTheLog) {
  EtcdOptions options;
  options.flags = {"--heartbeat-interval=never"};
  const Stopwatch watch;
  try {
    const EtcdCluster etcd(options);
    FAIL() << "started";
  } catch (const std::runtime_error& e) {
    EXPECT_NE(std::string(e.what()).find("\"never\""), std::string::npos) << e.what();
  }
  EXPECT_LT(watch.elapsed(), 10s);
}

TEST_F(EtcdSupport, APortThatIsTakenIsSaid) {
  const EtcdCluster first;
  EtcdOptions options;
  options.flags = {"--listen-client-urls=http://" + first.host(0)};
  try {
    const EtcdCluster second(options);
    FAIL() << "started";
  } catch (const std::runtime_error& e) {
    EXPECT_NE(std::string(e.what()).find("a port is taken"), std::string::npos) << e.what();
  }
}

TEST_F(EtcdSupport, KeysAreWrittenReadAndRemoved) {
  EtcdCluster etcd;
  EXPECT_TRUE(etcd.keys().empty());
  const std::string odd("b/\0\xff\n\"", 6);
  const auto first = etcd.put("a", "1");
  EXPECT_EQ(first, 2);
  etcd.put(odd, "2");
  etcd.put("a", "3");
  EXPECT_EQ(etcd.revision(), 4);

  const auto all = etcd.keys();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].key, "a");
  EXPECT_EQ(all[0].value, "3");
  EXPECT_EQ(all[0].create_revision, first);
  EXPECT_EQ(all[0].mod_revision, 4);
  EXPECT_EQ(all[0].version, 2);
  EXPECT_EQ(all[0].lease, 0);
  EXPECT_EQ(all[1].key, odd);
  ASSERT_EQ(etcd.keys("b").size(), 1U);
  EXPECT_EQ(etcd.keys("b")[0].key, odd);

  EXPECT_EQ(etcd.key(odd).value().value, "2");
  const auto created = etcd.key(odd)->create_revision;
  EXPECT_FALSE(etcd.remove_key(odd, created + 1)) << "another key of this name";
  EXPECT_TRUE(etcd.remove_key(odd, created));
  etcd.put(odd, odd);
  EXPECT_FALSE(etcd.remove_key(odd, created)) << "an earlier key of this name";
  EXPECT_TRUE(etcd.remove_key(odd));
  EXPECT_FALSE(etcd.remove_key(odd));
  EXPECT_FALSE(etcd.key(odd));
  EXPECT_EQ(etcd.remove_all(""), 1);
  EXPECT_TRUE(etcd.keys().empty());
}

TEST_F(EtcdSupport, LeasesAreGrantedListedAndRevokedWithTheirKeys) {
  EtcdCluster etcd;
  EXPECT_TRUE(etcd.leases().empty());
  const auto one = etcd.grant(60s);
  const auto two = etcd.grant(90s);
  EXPECT_EQ(etcd.leases(), (std::set{one, two}));
  etcd.put("k", "v", one);
  EXPECT_EQ(etcd.key("k").value().lease, one);
  const auto seen = etcd.lease(one);
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->granted, 60);
  EXPECT_GT(seen->ttl, 0);
  EXPECT_LE(seen->ttl, 60);
  EXPECT_EQ(seen->keys, std::set<std::string>{"k"});

  EXPECT_TRUE(etcd.revoke(one));
  EXPECT_FALSE(etcd.revoke(one));
  EXPECT_FALSE(etcd.lease(one));
  EXPECT_FALSE(etcd.key("k"));
  EXPECT_EQ(etcd.leases(), std::set{two});
  EXPECT_THROW(etcd.put("k", "v", one), EtcdError);
}

TEST_F(EtcdSupport, ALeaseThatNobodyRenewsRunsOut) {
  EtcdCluster etcd;
  const auto lease = etcd.grant(1s);  // etcd makes every lease at least 1.5 election timeouts long
  etcd.put("k", "v", lease);
  EXPECT_TRUE(eventually("end of the lease", [&] { return etcd.leases().empty(); }));
  EXPECT_FALSE(etcd.key("k"));
}

TEST_F(EtcdSupport, CountsCallsByMethod) {
  EtcdCluster etcd;
  EXPECT_EQ(etcd.metric(0, "etcd_server_has_leader"), 1);
  EXPECT_EQ(etcd.metric(0, "no_such_name"), -1);
  const auto puts = etcd.unary_calls(0, "KV", "Put");
  const auto received = etcd.messages_received(0, "KV", "Put");
  const auto sent = etcd.messages_sent(0, "KV", "Put");
  etcd.put("a", "1");
  etcd.put("a", "2");
  EXPECT_EQ(etcd.unary_calls(0, "KV", "Put"), puts + 2);
  EXPECT_EQ(etcd.messages_received(0, "KV", "Put"), received + 2);
  EXPECT_EQ(etcd.messages_sent(0, "KV", "Put"), sent + 2);
  EXPECT_EQ(etcd.metric(0, "grpc_server_handled_total{grpc_method=\"Put\",grpc_code=\"OK\"}"),
            static_cast<double>(puts + 2));
  EXPECT_EQ(etcd.streams(0, "KV", "Put"), -1);
  EXPECT_EQ(etcd.streams(0, "Watch", "Watch"), 0);
  EXPECT_EQ(etcd.open_streams(0, "Watch", "Watch"), 0);
  EXPECT_EQ(etcd.unary_calls(0, "Watch", "Watch"), -1);
  EXPECT_EQ(etcd.watchers(0), 0);
}

TEST_F(EtcdSupport, AKilledServerIsGoneAndComesBackWithItsData) {
  EtcdCluster etcd;
  EXPECT_EQ(etcd.hosts(), "127.0.0.1:" + std::to_string(etcd.client_port(0)));
  EXPECT_EQ(etcd.leader(), 0);
  EXPECT_TRUE(etcd.status(0).value().version.starts_with("3."));
  etcd.put("a", "1");
  const auto lease = etcd.grant(60s);
  etcd.kill(0);
  EXPECT_FALSE(etcd.running(0));
  EXPECT_EQ(etcd.pid(0), -1);
  EXPECT_FALSE(etcd.serving(0));
  EXPECT_FALSE(etcd.status(0));
  EXPECT_EQ(etcd.metric(0, "etcd_server_has_leader"), -1);
  etcd.start(0);
  EXPECT_EQ(etcd.key("a").value().value, "1");
  EXPECT_EQ(etcd.leases(), std::set{lease});
}

TEST_F(EtcdSupport, ThreeServersAgree) {
  EtcdCluster etcd(three());
  say_start_time(etcd);
  const int leader = etcd.leader();
  EXPECT_NE(etcd.a_follower(), leader);
  EXPECT_NE(etcd.status(0).value().cluster, 0U);
  EXPECT_EQ(etcd.status(0).value().revision, 1);
  const auto empty = etcd.hash(0);
  etcd.put("a", "1");
  etcd.wait_synced();
  EXPECT_NE(etcd.hash(0), empty);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(etcd.serving(i));
    EXPECT_EQ(etcd.hash(i), etcd.hash(0));
    EXPECT_EQ(etcd.status(i).value().revision, 2);
    EXPECT_EQ(etcd.status(i).value().leader, etcd.status(leader).value().member);
    EXPECT_EQ(etcd.status(i).value().cluster, etcd.status(leader).value().cluster);
  }
}

TEST_F(EtcdSupport, AKilledLeaderIsReplaced) {
  EtcdCluster etcd(three());
  etcd.put("a", "1");
  const int old = etcd.leader();
  etcd.kill(old);
  const int next = etcd.leader_after(old);
  EXPECT_NE(next, old);
  etcd.put("a", "2");
  etcd.start(old);
  etcd.wait_synced();
  EXPECT_EQ(etcd.leader(), next);
  EXPECT_EQ(etcd.key("a").value().value, "2");
}

TEST_F(EtcdSupport, APausedLeaderIsReplacedAndLaterFollows) {
  EtcdCluster etcd(three());
  const int old = etcd.leader();
  const auto pid = etcd.pid(old);
  etcd.pause(old);
  EXPECT_TRUE(etcd.running(old));
  EXPECT_FALSE(etcd.status(old));
  const int next = etcd.leader_after(old);
  etcd.put("a", "1");
  etcd.resume(old);
  etcd.wait_synced();
  EXPECT_EQ(etcd.pid(old), pid);
  EXPECT_EQ(etcd.leader(), next);
}

TEST_F(EtcdSupport, WithoutAMajorityNoneServes) {
  EtcdCluster etcd(three());
  etcd.kill(1);
  etcd.kill(2);
  EXPECT_TRUE(eventually("server 0 notices", [&] { return etcd.status(0).value().leader == 0; }));
  EXPECT_FALSE(etcd.serving(0));
  etcd.start(1, false);
  etcd.start(2, false);
  etcd.wait_synced();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(etcd.serving(i));
}

TEST_F(EtcdSupport, TheLeaderCanBeChosen) {
  EtcdCluster etcd(three());
  for (int i = 0; i < 3; ++i) {
    etcd.make_leader(i);
    EXPECT_EQ(etcd.leader(), i);
  }
}

}  // namespace
}  // namespace baton::test
