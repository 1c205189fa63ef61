// Checks that faults between etcd servers are in force, and how etcd reacts to them.
#include "support/etcd_server.h"
#include "support/eventually.h"
#include "support/sockets.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <regex>
#include <set>
#include <string>

namespace baton::test {
namespace {

EtcdOptions linked() {
  EtcdOptions options;
  options.servers = 3;
  options.peer_proxies = true;
  return options;
}

void report(const std::string& what, std::chrono::milliseconds time) {
  std::cout << "[          ] " << what << " after " << time.count() << " ms" << std::endl;
}

// The peer ports on which the servers listen, read from their logs.
std::set<std::uint16_t> real_ports(const EtcdCluster& etcd) {
  std::set<std::uint16_t> ports;
  const std::regex listens(R"re("listen-peer-urls":\["http://127\.0\.0\.1:([0-9]+)"\])re");
  for (int i = 0; i < etcd.size(); ++i) {
    std::ifstream in(etcd.log(i));
    std::smatch found;
    for (std::string line; std::getline(in, line);) {
      if (std::regex_search(line, found, listens)) {
        ports.insert(static_cast<std::uint16_t>(std::stoul(found[1])));
      }
    }
  }
  EXPECT_EQ(ports.size(), 3U);
  return ports;
}

bool knows_a_leader(const EtcdCluster& etcd, int i) {
  const auto now = etcd.status(i);
  return now && now->leader != 0;
}

class EtcdLinksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!etcd_installed()) GTEST_SKIP() << "no etcd on this machine";
  }
};

TEST_F(EtcdLinksTest, AllThatServersSayToEachOtherPassesTheProxies) {
  EtcdCluster etcd(linked());
  report("3 servers ready", etcd.start_time());
  const auto ports = real_ports(etcd);
  EXPECT_EQ(connections_of_others(ports), 0);
  for (int i = 0; i < etcd.size(); ++i) {
    etcd.restart(i);
    etcd.wait_synced();
    EXPECT_EQ(connections_of_others(ports), 0) << "after the restart of " << i;
  }
  for (const auto& [a, b] : {std::pair{0, 1}, {0, 2}, {1, 2}}) {
    EXPECT_GT(etcd.link(a, b).bytes(a), 0U);
    EXPECT_GT(etcd.link(b, a).bytes(b), 0U);
    EXPECT_GT(etcd.link(a, b).connections(), 0);
  }
}

TEST_F(EtcdLinksTest, AnIsolatedLeaderIsReplacedAndLaterFollows) {
  EtcdCluster etcd(linked());
  const int old = etcd.leader();
  const Stopwatch watch;
  etcd.isolate(old);
  EXPECT_FALSE(etcd.serving(old));  // it may report that it leads, but it answers no read
  const int next = etcd.leader_after(old);
  report("another one led", watch.elapsed());
  EXPECT_TRUE(eventually("old leader gives up", [&] { return !knows_a_leader(etcd, old); }));
  report("the old one had given up", watch.elapsed());
  etcd.put("after", "1");
  EXPECT_EQ(etcd.status(old).value().revision, 1);
  EXPECT_FALSE(etcd.serving(old));
  const Stopwatch healing;
  etcd.heal_all();
  etcd.wait_synced();
  report("all in step, healed", healing.elapsed());
  EXPECT_EQ(etcd.status(old).value().revision, 2);
  EXPECT_TRUE(etcd.serving(old));
  EXPECT_NE(next, old);
}

TEST_F(EtcdLinksTest, AnIsolatedFollowerHasNoLeaderAndTheOthersGoOn) {
  EtcdCluster etcd(linked());
  const int leader = etcd.leader();
  const int follower = etcd.a_follower();
  const Stopwatch watch;
  etcd.isolate(follower);
  EXPECT_FALSE(etcd.serving(follower));
  etcd.put("after", "1");
  EXPECT_EQ(etcd.status(follower).value().revision,
            1);  // it still reports its old state
  EXPECT_TRUE(
      eventually("follower without leader", [&] { return !knows_a_leader(etcd, follower); }));
  report("the follower knew no leader", watch.elapsed());
  EXPECT_EQ(etcd.leader(), leader);
  etcd.heal_all();
  etcd.wait_synced();
  report("all in step", watch.elapsed());
  EXPECT_EQ(etcd.status(follower).value().revision, 2);
}

TEST_F(EtcdLinksTest, AFollowerThatTheLeaderCannotHearHearsTheLeader) {
  EtcdCluster etcd(linked());
  const int leader = etcd.leader();
  const int follower = etcd.a_follower();
  const auto term = etcd.status(leader).value().term;
  const auto link = etcd.link(leader, follower);
  link.blackhole(follower);
  const auto before = link.bytes(follower);
  EXPECT_TRUE(eventually("answers lost", [&] { return link.bytes(follower) > before; }));
  EXPECT_FALSE(etcd.serving(follower));  // a linearizable read needs the leader
  EXPECT_TRUE(knows_a_leader(etcd, follower));
  etcd.put("after", "1");
  EXPECT_EQ(etcd.leader(), leader);
  EXPECT_EQ(etcd.status(follower).value().term, term);
  link.heal();
  etcd.wait_serving(follower);
}

TEST_F(EtcdLinksTest, AFollowerThatCannotHearTheLeaderLosesIt) {
  EtcdCluster etcd(linked());
  const int leader = etcd.leader();
  const int follower = etcd.a_follower();
  const auto link = etcd.link(leader, follower);
  const Stopwatch watch;
  link.blackhole(leader);
  EXPECT_TRUE(
      eventually("follower without leader", [&] { return !knows_a_leader(etcd, follower); }));
  report("the follower knew no leader", watch.elapsed());
  etcd.put("after", "1");
  link.heal();
  etcd.wait_synced();
  report("all in step", watch.elapsed());
}

TEST_F(EtcdLinksTest, AShortStallChangesNothing) {
  EtcdCluster etcd(linked());
  const int leader = etcd.leader();
  const int follower = etcd.a_follower();
  const auto term = etcd.status(leader).value().term;
  const auto link = etcd.link(follower, leader);
  link.stall(leader);
  const auto before = link.bytes(leader);
  etcd.put("a", "1");
  EXPECT_TRUE(eventually("news held", [&] { return link.bytes(leader) > before; }));
  EXPECT_EQ(etcd.status(follower).value().revision, 1);
  link.resume(leader);
  etcd.wait_synced();
  EXPECT_EQ(etcd.status(follower).value().revision, 2);
  EXPECT_EQ(etcd.leader(), leader);
  EXPECT_EQ(etcd.status(leader).value().term, term);
}

TEST_F(EtcdLinksTest, ResetAndCutConnectionsAreMadeAgain) {
  EtcdCluster etcd(linked());
  const int leader = etcd.leader();
  const int follower = etcd.a_follower();
  const auto link = etcd.link(leader, follower);
  link.reset();
  EXPECT_TRUE(eventually("connected again", [&] { return link.connections() > 0; }));
  etcd.wait_synced();
  link.cut();
  EXPECT_EQ(link.connections(), 0);
  EXPECT_TRUE(
      eventually("follower without leader", [&] { return !knows_a_leader(etcd, follower); }));
  EXPECT_EQ(link.connections(), 0);
  link.heal();
  etcd.wait_synced();
  EXPECT_TRUE(etcd.serving(follower));
}

}  // namespace
}  // namespace baton::test
