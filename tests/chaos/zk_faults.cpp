// Servers and clients die, stop and come back while a crowd acquires locks continuously. No two
// holds may overlap, tokens must rise, no entry may be left, and all clients must continue.
#include "chaos/zk_faults.h"

#include "chaos/server_faults.h"

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace baton::chaos {

using namespace std::chrono_literals;

FaultyStore store_of(const test::ZkEnsemble& zk) {
  FaultyStore store{"zk", {}, kZkTimeout, zk.options().tick * 3 / 2};
  for (int i = 0; i < zk.size(); ++i) store.ports.push_back(zk.client_port(i));
  return store;
}

std::unique_ptr<test::ZkEnsemble> ZkFaults::zk_;

void ZkFaults::SetUpTestSuite() {
  if (zk_ || !test::zk_installed()) return;
  test::ZkOptions options;
  options.servers = 3;
  options.peer_proxies = true;
  options.tick = kZkTick;
  zk_ = std::make_unique<test::ZkEnsemble>(options);
}

void ZkFaults::SetUp() {
  if (!zk_) GTEST_SKIP() << "no ZooKeeper on this machine";
}

namespace {

class ZkFaultsCrowd : public ZkFaults {
 protected:
  static void with_crowd(const std::function<void(Crowd&)>& fault, bool linger = true) {
    chaos::with_crowd(store_of(zk()), linger, fault,
                      [](Crowd& crowd, Client&) { expect_exclusive(crowd); });
    if (HasFailure()) std::printf("%s\n", zk().tails().c_str());
  }
};

TEST_F(ZkFaultsCrowd, GoesOnWhenTheLeaderIsKilledAndRestarted) {
  with_crowd([](Crowd& crowd) { leader_killed(zk(), crowd); });
}

TEST_F(ZkFaultsCrowd, GoesOnWhenTheLeaderStopsForTwoTimeoutsAndComesBack) {
  with_crowd([](Crowd& crowd) { leader_paused(zk(), crowd, 2 * kZkTimeout); });
}

TEST_F(ZkFaultsCrowd, GoesOnWhenAFollowerIsCutOff) {
  with_crowd([](Crowd& crowd) { follower_cut_off(zk(), crowd, kZkTimeout + 2 * kZkTick); });
}

TEST_F(ZkFaultsCrowd, GoesOnWhenAllServersAreKilledAndRestarted) {
  with_crowd([](Crowd&) { all_restarted(zk()); });
}

TEST_F(ZkFaultsCrowd, GoesOnWhenAHolderIsCutOffSilently) {
  with_crowd([](Crowd& crowd) { holder_cut_off(crowd, kZkTimeout + 2 * kZkTick); });
}

TEST_F(ZkFaultsCrowd, AStoppedProcessWakesUpWithoutItsLock) {
  with_crowd([](Crowd& crowd) { process_stopped(store_of(zk()), crowd, 2 * kZkTimeout); }, false);
}

// The contract: the entry of a crashed holder is gone within the session timeout and 1.5 ticks.
TEST(ZkCrash, TheNextOneHoldsWithinTheTimeoutAndOneAndAHalfTicks) {
  if (!test::zk_installed()) GTEST_SKIP() << "no ZooKeeper on this machine";
  constexpr auto kTick = 2s;
  constexpr auto kSlack = 250ms;  // for the watch events and for busy threads
  test::ZkOptions options;
  options.servers = 3;
  options.tick = kTick;
  const test::ZkEnsemble zk(options);
  std::vector<std::string> hosts;
  for (int i = 0; i < zk.size(); ++i) hosts.push_back(zk.host(i));  // one holder on each server
  for (const auto took : time_after_crashes(store_of(zk), fresh_root(), hosts)) {
    EXPECT_LE(took, kZkTimeout + kTick * 3 / 2 + kSlack);
  }
}

}  // namespace
}  // namespace baton::chaos
