// Checks that faults between ZooKeeper servers are in force, and how ZooKeeper reacts to them.
#include "support/eventually.h"
#include "support/sockets.h"
#include "support/zk_server.h"
#include "support/zk_test_client.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string>

namespace baton::test {
namespace {

ZkOptions linked() {
  ZkOptions options;
  options.servers = 3;
  options.tick = 500ms;  // a follower leaves its leader after 2.5 s
  options.peer_proxies = true;
  return options;
}

void report(const std::string& what, std::chrono::milliseconds time) {
  std::cout << "[          ] " << what << " after " << time.count() << " ms" << std::endl;
}

// The quorum and election ports on which the servers listen, read from their configurations.
std::set<std::uint16_t> real_ports(const ZkEnsemble& zk) {
  std::set<std::uint16_t> ports;
  for (int i = 0; i < zk.size(); ++i) {
    std::ifstream in(std::filesystem::path(zk.log(i)).replace_filename("zoo.cfg"));
    const std::string own = "server." + std::to_string(i + 1) + "=127.0.0.1:";
    for (std::string line; std::getline(in, line);) {
      if (!line.starts_with(own)) continue;
      std::uint16_t quorum = 0;
      std::uint16_t election = 0;
      char colon = 0;
      std::istringstream(line.substr(own.size())) >> quorum >> colon >> election;
      ports.insert({quorum, election});
    }
  }
  EXPECT_EQ(ports.size(), 6U);
  return ports;
}

class ZkLinksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!zk_installed()) GTEST_SKIP() << "no ZooKeeper on this machine";
  }
};

TEST_F(ZkLinksTest, AllThatServersSayToEachOtherPassesTheProxies) {
  ZkEnsemble zk(linked());
  report("3 servers ready", zk.start_time());
  const auto ports = real_ports(zk);
  EXPECT_EQ(connections_of_others(ports), 0);
  // Servers with larger numbers connect to a server that has restarted.
  for (int i = 0; i < zk.size(); ++i) {
    zk.restart(i);
    zk.wait_synced();
    EXPECT_EQ(connections_of_others(ports), 0) << "after the restart of " << i;
  }
  for (const auto& [a, b] : {std::pair{0, 1}, {0, 2}, {1, 2}}) {
    EXPECT_GT(zk.link(a, b).bytes(a), 0U);
    EXPECT_GT(zk.link(b, a).bytes(b), 0U);
    EXPECT_GT(zk.link(a, b).connections(), 0);
  }
}

TEST_F(ZkLinksTest, AFollowerThatTheLeaderCannotHearServesOnForAWhile) {
  ZkEnsemble zk(linked());
  const int leader = zk.leader();
  const int follower = zk.a_follower();
  ZkTestClient client(zk.host(follower), 8s);
  ASSERT_EQ(client.create("/n"), ZOK);
  ASSERT_EQ(zk.number(leader, "zk_synced_followers"), 2);

  const auto link = zk.link(leader, follower);
  const Stopwatch watch;
  link.blackhole(follower);
  const auto before = link.bytes(follower);
  EXPECT_EQ(client.exists("/n"), ZOK);
  EXPECT_EQ(zk.number(leader, "zk_synced_followers"), 2);
  EXPECT_TRUE(eventually("pings lost", [&] { return link.bytes(follower) > before; }));
  EXPECT_EQ(client.exists("/n"), ZOK);
  EXPECT_EQ(client.disconnects(), 0);

  EXPECT_TRUE(eventually("leader misses the follower",
                         [&] { return zk.number(leader, "zk_synced_followers") == 1; }));
  report("the leader gave the follower up", watch.elapsed());
  EXPECT_GE(watch.elapsed(), 1s);
  EXPECT_TRUE(eventually("follower stops to serve", [&] { return !zk.serving(follower); }));
  report("the follower stopped serving", watch.elapsed());
  EXPECT_EQ(zk.leader(), leader);

  link.heal();
  zk.wait_serving(follower);
  report("the follower served again", watch.elapsed());
  EXPECT_TRUE(eventually("client back", [&] { return client.exists("/n") == ZOK; }));
}

TEST_F(ZkLinksTest, AnIsolatedLeaderIsReplacedAndLaterFollows) {
  ZkEnsemble zk(linked());
  const int old = zk.leader();
  const Stopwatch watch;
  zk.isolate(old);
  EXPECT_TRUE(zk.serving(old));
  const int next = zk.leader_after(old);
  report("another one led", watch.elapsed());
  EXPECT_TRUE(eventually("old leader gives up", [&] { return !zk.serving(old); }));
  report("the old one had stopped", watch.elapsed());
  EXPECT_EQ(zk.leader(), next);
  const Stopwatch healing;
  zk.heal_all();
  zk.wait_serving(old);
  report("the old one followed, healed", healing.elapsed());
  EXPECT_EQ(zk.mntr(old)["zk_server_state"], "follower");
  EXPECT_EQ(zk.leader(), next);
}

TEST_F(ZkLinksTest, AShortStallChangesNothing) {
  ZkEnsemble zk(linked());
  const int leader = zk.leader();
  const int follower = zk.a_follower();
  ZkTestClient client(zk.host(follower), 8s);
  const auto link = zk.link(follower, leader);
  link.stall(follower);
  const auto before = link.bytes(follower);
  ASSERT_EQ(client.create_later("/n"), ZOK);
  EXPECT_TRUE(eventually("request held", [&] { return link.bytes(follower) > before; }));
  link.resume(follower);
  EXPECT_EQ(client.exists("/n"), ZOK);
  EXPECT_EQ(client.disconnects(), 0);
  EXPECT_EQ(zk.leader(), leader);
}

}  // namespace
}  // namespace baton::test
