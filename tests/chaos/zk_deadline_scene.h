// One cut between real servers, and what holders and waiters believe meanwhile.
#pragma once

#include "chaos/zk_deadline.h"
#include "support/zk_server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

namespace baton::chaos {

inline constexpr std::chrono::milliseconds kTimeout{4'000};  // session timeout
inline constexpr std::chrono::milliseconds kTick{2'000};     // the default of ZooKeeper
inline constexpr std::chrono::milliseconds kHeartbeat = kTimeout / 8;
// A leader asks its followers so often which sessions are alive, and counts sessions from their
// answers.
inline constexpr std::chrono::milliseconds kPing = kTick / 2;

// How long the last of the holders would believe if no holder received anything more.
using Longest = std::function<nanoseconds()>;

// What a scenario does, and to which servers and clients.
struct Setting {
  int victim = 0;        // the holders connect only to this server
  std::string majority;  // the servers of the waiters and of the check that nodes are gone
  int holders = 4;
  // When a holder begins with its heartbeats, as a phase of kHeartbeat (see wait_for_phase()). By
  // default the holders are spread evenly.
  std::function<std::chrono::milliseconds(int holder)> heartbeats;
  std::function<void()> before;  // called before any client connects
  std::function<void(const Longest&)> cut;
  bool naive = false;  // adds a client without a deadline, which believes while it is connected
  // The cut begins with a stall. A holder that loses its lock during the stall removes its node
  // itself.
  bool stalls = false;
};

// The servers are shared by all tests of the process.
class ZkDeadline : public ::testing::Test {
 protected:
  static void SetUpTestSuite();
  void SetUp() override;
  void TearDown() override;

  static test::ZkEnsemble& zk() { return *zk_; }
  static std::string all_but(int server);

  // Runs one cut, checks everything that must hold, and adds its margins.
  static void trial(int run, const Setting& setting, Margins& margins);
  // Runs with holders on the leader; each run cuts at another phase of the servers' ticks.
  static void trials_on_leaders(const char* name,
                                const std::function<void(int run, int leader)>& cut);

 private:
  static std::unique_ptr<test::ZkEnsemble> zk_;
};

}  // namespace baton::chaos
