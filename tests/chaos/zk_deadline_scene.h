// One cut between real servers, and what everybody believed meanwhile.
#pragma once

#include "chaos/zk_deadline.h"
#include "support/zk_server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace baton::chaos {

inline constexpr std::chrono::milliseconds kTimeout{4'000};  // of sessions
inline constexpr std::chrono::milliseconds kTick{2'000};     // as ZooKeeper comes
inline constexpr std::chrono::milliseconds kHeartbeat = kTimeout / 8;
// A leader asks its followers this often who is alive, and counts sessions from their answers on.
inline constexpr std::chrono::milliseconds kPing = kTick / 2;

// For how much longer the last of the holders would believe if nobody heard anything more.
using Longest = std::function<nanoseconds()>;

// What a scenario does, and to whom.
struct Setting {
  int victim = 0;        // the holders know this server only
  std::string majority;  // those who see the node go, and who wait
  int holders = 4;
  // When a holder begins with its heartbeats, on the clock of wait_for_phase(); by default they are
  // spread evenly.
  std::function<std::chrono::milliseconds(int holder)> heartbeats;
  std::function<void()> before;  // nobody has connected yet
  std::function<void(const Longest&)> cut;
  bool naive = false;   // with somebody who trusts his connection
  bool stalls = false;  // first; who loses his lock in the stall gives it up by himself
};

// The servers are shared by all tests of the process.
class ZkDeadline : public ::testing::Test {
 protected:
  static void SetUpTestSuite();
  void SetUp() override;
  void TearDown() override;

  static test::ZkEnsemble& zk() { return *zk_; }
  static std::string all_but(int server);

  // One cut: checks all that a cut must not do, and adds its margins.
  static void trial(int run, const Setting& setting, Margins& margins);
  // Runs with holders on the leader: each at another phase of the servers' ticks.
  static void trials_on_leaders(const char* name,
                                const std::function<void(int run, int leader)>& cut);

 private:
  static std::unique_ptr<test::ZkEnsemble> zk_;
};

}  // namespace baton::chaos
