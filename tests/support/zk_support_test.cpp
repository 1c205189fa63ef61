// Checks that ZkEnsemble and Proxy do what their headers describe.
#include "support/zk_server.h"

#include "support/child.h"
#include "support/eventually.h"
#include "support/proxy.h"
#include "support/scoped_variable.h"
#include "support/zk_test_client.h"

#include <gtest/gtest.h>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace baton::test {
namespace {

ZkOptions quick(int servers, bool peer_proxies = false) {
  ZkOptions options;
  options.servers = servers;
  options.tick = 500ms;
  options.peer_proxies = peer_proxies;
  return options;
}

class ZkSupport : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!zk_installed()) GTEST_SKIP() << "no ZooKeeper on this machine";
  }
};

TEST_F(ZkSupport, APortThatIsTakenIsSaid) {
  const ZkEnsemble first;
  ZkOptions options;
  options.config = {"clientPort=" + std::to_string(first.client_port(0))};
  try {
    const ZkEnsemble second(options);
    FAIL() << "started";
  } catch (const std::runtime_error& e) {
    EXPECT_NE(std::string(e.what()).find("a port is taken"), std::string::npos) << e.what();
  }
}

TEST_F(ZkSupport, SessionsNodesAndWatchesCanBeSeenFromOutside) {
  ZkEnsemble zk(quick(1));
  EXPECT_EQ(zk.hosts(), "127.0.0.1:" + std::to_string(zk.client_port(0)));
  EXPECT_EQ(zk.leader(), 0);
  EXPECT_EQ(zk.four_letter(0, "ruok"), "imok");
  EXPECT_EQ(zk.mntr(0)["zk_server_state"], "standalone");
  const auto before = zk.packets_received(0);
  EXPECT_GT(before, 0);
  EXPECT_GT(zk.packets_received(0), before);
  ZkTestClient client(zk.hosts());
  ASSERT_EQ(client.create("/e", "", ZOO_EPHEMERAL), ZOK);
  std::string data;
  ASSERT_EQ(client.get("/e", data, true), ZOK);
  EXPECT_EQ(zk.sessions(), std::set{client.session()});
  EXPECT_TRUE(zk.session_exists(client.session()));
  EXPECT_EQ(zk.server_of(client.session()), 0);
  EXPECT_EQ(zk.watches(0),
            (std::map<std::string, std::set<std::int64_t>>{{"/e", {client.session()}}}));
  EXPECT_EQ(zk.watch_count(0), 1);
  zk.pause(0);
  const Stopwatch watch;
  EXPECT_EQ(zk.four_letter(0, "ruok"), "");
  EXPECT_LT(watch.elapsed(), 5s);
  zk.resume(0);
  zk.wait_serving(0);
}

TEST_F(ZkSupport, ASessionRunsOutWhileItsClientIsKeptAway) {
  ZkEnsemble zk(quick(1));
  Proxy proxy(zk.client_port(0));
  ZkTestClient client(proxy.host(), 1s);
  ZkTestClient witness(zk.hosts());
  ASSERT_EQ(client.create("/e", "", ZOO_EPHEMERAL), ZOK);
  const Stopwatch watch;
  proxy.cut();
  EXPECT_TRUE(zk.session_exists(client.session()));
  EXPECT_TRUE(zk.wait_session_gone(client.session()));
  EXPECT_GE(watch.elapsed(), 500ms);
  EXPECT_EQ(witness.exists("/e"), ZNONODE);
  EXPECT_FALSE(client.expired());  // no server has told the client yet
  proxy.heal();
  EXPECT_TRUE(eventually("client told", [&] { return client.expired(); }));
}

class ZkSupportOfSize : public ZkSupport, public ::testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Servers, ZkSupportOfSize, ::testing::Values(1, 3));

TEST_P(ZkSupportOfSize, ASessionCanBeEndedAtOnce) {
  ZkEnsemble zk(quick(GetParam()));
  ZkTestClient witness(zk.host(zk.leader()));
  for (int i = 0; i < 3; ++i) {
    ZkTestClient client(zk.host(i % zk.size()), 5s);
    ASSERT_EQ(client.create("/e", "", ZOO_EPHEMERAL), ZOK);
    const Stopwatch watch;
    EXPECT_TRUE(zk.end_session(client.session()));
    EXPECT_LT(watch.elapsed(), 3s);  // the session did not expire by itself
    EXPECT_EQ(witness.exists("/e"), ZNONODE);
    EXPECT_TRUE(eventually("client told", [&] { return client.expired(); }));
  }
}

TEST_F(ZkSupport, AServerThatIsRebuiltHasWhatTheOthersHaveAndNothingOfItsOwn) {
  ZkEnsemble zk(quick(3));
  ZkTestClient client(zk.hosts(), 10s);
  ASSERT_EQ(client.create("/kept", "written"), ZOK);
  ASSERT_EQ(client.create("/held", "", ZOO_EPHEMERAL), ZOK);
  for (const int server : {zk.a_follower(), zk.leader()}) {
    const auto pid = zk.pid(server);
    const auto data = std::filesystem::path(zk.log(server)).parent_path() / "data/version-2";
    std::ofstream(data / "mine") << "old";
    zk.rebuild(server);
    EXPECT_NE(zk.pid(server), pid);
    EXPECT_FALSE(std::filesystem::exists(data / "mine"));
    ZkTestClient there(zk.host(server), 10s);
    EXPECT_EQ(there.exists("/kept"), ZOK);
    EXPECT_EQ(there.exists("/held"), ZOK);
  }
  EXPECT_FALSE(client.expired());
}

TEST_F(ZkSupport, ServersAreNotRebuiltWhileOneIsDown) {
  ZkEnsemble zk(quick(3));
  const int down = zk.a_follower();
  const int leader = zk.leader();
  zk.kill(down);
  EXPECT_FALSE(zk.running(down));
  EXPECT_EQ(zk.four_letter(down, "ruok"), "");
  EXPECT_THROW(zk.rebuild(leader), std::runtime_error);
  EXPECT_TRUE(zk.running(leader));
}

TEST_F(ZkSupport, TheProxyLosesARequestOrOnlyItsAnswer) {
  ZkEnsemble zk(quick(1));
  Proxy proxy(zk.client_port(0));
  ZkTestClient client(proxy.host());
  ZkTestClient witness(zk.hosts());

  proxy.cut_at_frame(Direction::kToServer, 2, false, zk_requests);
  EXPECT_EQ(client.create("/first"), ZOK);
  EXPECT_EQ(client.create("/lost"), ZCONNECTIONLOSS);
  EXPECT_TRUE(eventually("connected again", [&] { return client.connected(); }));
  EXPECT_EQ(witness.exists("/lost"), ZNONODE);

  proxy.cut_at_frame(Direction::kToServer, 1, true, zk_operation(ZOO_CREATE_OP));
  EXPECT_EQ(client.create("/unknown"), ZCONNECTIONLOSS);
  EXPECT_TRUE(eventually("created", [&] { return witness.exists("/unknown") == ZOK; }));

  EXPECT_TRUE(eventually("connected again", [&] { return client.connected(); }));
  proxy.cut_at_frame(Direction::kToClient, 1, false, zk_requests);
  EXPECT_EQ(client.create("/answered"), ZCONNECTIONLOSS);
  EXPECT_EQ(witness.exists("/answered"), ZOK);
}

// The test below starts this test in another process and kills that process. Prints the process ids
// of its servers.
TEST_F(ZkSupport, DISABLED_Victim) {
  std::unique_ptr<ZkEnsemble> zk;
  std::thread([&] { zk = std::make_unique<ZkEnsemble>(quick(3)); }).join();
  zk->wait_synced();  // the servers outlive the thread that created them
  zk->pause(1);
  std::cout << "servers " << zk->pid(0) << " " << zk->pid(1) << " " << zk->pid(2) << std::endl;
  pollfd none{-1, 0, 0};
  ::poll(&none, 1, static_cast<int>(kLong.count()));
}

TEST_F(ZkSupport, NoServerOutlivesAKilledTest) {
  const TempDir dir;  // the victim cannot remove its files
  const ScopedVariable temporary("TMPDIR", dir.path());
  Child victim("/proc/self/exe",
               {"--gtest_also_run_disabled_tests", "--gtest_filter=ZkSupport.DISABLED_Victim"});
  const auto line = victim.line_with("servers ", 2 * kLong);
  ASSERT_TRUE(line);
  std::istringstream words(*line);
  std::string word;
  words >> word;
  std::vector<int> servers;
  for (pid_t pid = 0; words >> pid;) {
    servers.push_back(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    ASSERT_GE(servers.back(), 0);
  }
  ASSERT_EQ(servers.size(), 3U);
  victim.kill_hard();
  const Stopwatch watch;
  for (const int server : servers) {
    pollfd ended{server, POLLIN, 0};
    EXPECT_EQ(::poll(&ended, 1, static_cast<int>(kLong.count())), 1) << "a server lives on";
    ::close(server);
  }
  std::cout << "[          ] servers gone " << watch.elapsed().count() << " ms after the test\n";
}

}  // namespace
}  // namespace baton::test
