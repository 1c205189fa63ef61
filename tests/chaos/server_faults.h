// Faults for any cluster of servers. After each of them, everything is healed and all servers are
// in step.
#pragma once

#include "chaos/faults.h"
#include "support/server_cluster.h"

#include <gtest/gtest.h>

#include <chrono>

namespace baton::chaos {

inline void leader_killed(test::ServerCluster& servers, Crowd& crowd) {
  const int leader = servers.leader();
  servers.kill(leader);
  EXPECT_TRUE(crowd.goes_on(1));
  servers.start(leader);
  servers.wait_synced();
}

// Returns a moment just before the leader continued.
inline std::chrono::nanoseconds leader_paused(test::ServerCluster& servers, Crowd& crowd,
                                              std::chrono::milliseconds time) {
  const int leader = servers.leader();
  const test::Stopwatch watch;
  servers.pause(leader);
  EXPECT_TRUE(crowd.goes_on(1));
  EXPECT_TRUE(wait_until(watch, time));
  const auto back = test::boot_now();
  servers.resume(leader);
  servers.wait_synced();
  return back;
}

// Cuts off the follower that serves most clients. Returns how many holds were lost before it was
// healed. It may be none: if the leader and the other servers do not notice the cut, clients need
// not notice it.
inline int follower_cut_off(test::ServerCluster& servers, Crowd& crowd,
                            std::chrono::milliseconds time) {
  const test::Stopwatch watch;
  servers.isolate(crowd.busiest(servers.leader()));
  EXPECT_TRUE(crowd.goes_on(1));
  EXPECT_TRUE(wait_until(watch, time));
  const int lost = crowd.lost();
  servers.heal_all();
  servers.wait_synced();
  return lost;
}

inline void leader_cut_off(test::ServerCluster& servers, Crowd& crowd,
                           std::chrono::milliseconds time) {
  const test::Stopwatch watch;
  servers.isolate(servers.leader());
  EXPECT_TRUE(crowd.goes_on(1));
  EXPECT_TRUE(wait_until(watch, time));
  servers.heal_all();
  servers.wait_synced();
}

inline void all_restarted(test::ServerCluster& servers) {
  for (int i = 0; i < servers.size(); ++i) servers.kill(i);
  for (int i = 0; i < servers.size(); ++i) servers.start(i, false);
  servers.wait_synced();
}

// Nothing arrives, and no connection is closed.
inline void holder_cut_off(Crowd& crowd, std::chrono::milliseconds time) {
  const test::Stopwatch watch;
  const auto& proxies = crowd.proxies(crowd.lingerer());
  for (const auto& proxy : proxies) {
    proxy->blackhole(test::Direction::kToServer);
    proxy->blackhole(test::Direction::kToClient);
  }
  EXPECT_TRUE(wait_until(watch, time));
  for (const auto& proxy : proxies) proxy->heal();
  EXPECT_GE(crowd.lost(), 1);
}

// A child process holds the first lock and is stopped. When it continues, it has lost the lock.
inline void process_stopped(const FaultyStore& store, Crowd& crowd,
                            std::chrono::milliseconds time) {
  HoldingChild child(store.url(store.hosts(), crowd.root()), store.session, Crowd::name(0));
  ASSERT_TRUE(child.wait_held());
  const test::Stopwatch watch;
  ASSERT_TRUE(child.stop());
  EXPECT_TRUE(crowd.goes_on(0));
  EXPECT_TRUE(wait_until(watch, time));
  child.go_on();
  EXPECT_EQ(child.end(), 0);
  const auto holds = history::read(child.record());
  EXPECT_EQ(holds.size(), 1U);
  crowd.holds(0).add(holds);
}

}  // namespace baton::chaos
