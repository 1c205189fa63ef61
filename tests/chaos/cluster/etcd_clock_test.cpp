// Checks that clients keep working when the wall clock is set back: gRPC's own timers use that
// clock.
#include "support/child.h"
#include "support/etcd_server.h"
#include "support/eventually.h"
#include "support/temp_dir.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::eventually;

void set_clock(const std::string& file, std::int64_t ahead) {
  std::fstream clock(file, std::ios::binary | std::ios::in | std::ios::out);
  clock.write(reinterpret_cast<const char*>(&ahead), sizeof ahead);
}

// Three clients that hold one lock each, in a program that also uses gRPC itself.
class Keeper {
 public:
  Keeper(const test::EtcdCluster& server, const std::string& clock, const std::string& session_ms)
      : child_("/usr/bin/env",
               {std::string("LD_PRELOAD=") + BATON_CLOCK_LIBRARY, "BATON_CHAOS_CLOCK=" + clock,
                BATON_KEEPER, "etcd://" + server.hosts() + "/clock", session_ms}) {}
  bool holds() { return child_.line_with("held").has_value(); }
  std::optional<std::string> end() {
    child_.say("");
    return child_.line_with("kept");
  }

 private:
  test::Child child_;
};

void pass(std::chrono::milliseconds time) {
  EXPECT_FALSE(eventually(
      "nobody", [] { return false; }, time));
}

// The program's own thread waits for the network. The threads of baton wait for the wall clock.
TEST(EtcdClock, LocksAreKeptBesideOtherUsersOfGrpcWhenTheWallClockIsSetBack) {
  if (!test::etcd_installed()) GTEST_SKIP() << "no etcd on this machine";
  test::EtcdCluster server;
  const test::TempDir directory;
  const std::string clock = directory / "clock";
  std::ofstream(clock, std::ios::binary).write("\0\0\0\0\0\0\0\0", 8);
  Keeper keeper(server, clock, "6000");
  ASSERT_TRUE(keeper.holds());
  // All threads begin to wait while the clock is ahead. Then the clock is set right. Leases need a
  // renewal every 2 s.
  set_clock(clock, 3600);
  pass(2s);
  set_clock(clock, 0);
  pass(9s);
  EXPECT_EQ(keeper.end(), "kept 3");
}

// A client that only holds a lock sends no other requests. Only its heartbeat can notice that gRPC
// does not reconnect.
TEST(EtcdClock, LocksAreKeptOverARestartWhenTheWallClockIsSetBack) {
  if (!test::etcd_installed()) GTEST_SKIP() << "no etcd on this machine";
  test::EtcdCluster server;
  const test::TempDir directory;
  const std::string clock = directory / "clock";
  std::ofstream(clock, std::ios::binary).write("\0\0\0\0\0\0\0\0", 8);
  Keeper keeper(server, clock, "20000");
  ASSERT_TRUE(keeper.holds());
  set_clock(clock, 3600);
  pass(7s);  // at least one heartbeat
  server.kill(0);
  pass(1s);
  set_clock(clock, 0);
  server.start(0);
  pass(21s);
  EXPECT_EQ(keeper.end(), "kept 3");
}

TEST(EtcdClock, AWallClockThatIsSetBackStopsNobody) {
  if (!test::etcd_installed()) GTEST_SKIP() << "no etcd on this machine";
  test::EtcdCluster server;
  const test::TempDir directory;
  const std::string clock = directory / "clock";
  const std::string counter = directory / "counter";
  std::ofstream(clock, std::ios::binary).write("\0\0\0\0\0\0\0\0", 8);
  test::Child child("/usr/bin/env",
                    {std::string("LD_PRELOAD=") + BATON_CLOCK_LIBRARY, "BATON_CHAOS_CLOCK=" + clock,
                     "BATON_TEST_SESSION_MS=2000", BATON_CHILD, "loop",
                     "etcd://" + server.hosts() + "/clock", "lock", "1000000", counter});
  const auto turns = [&] {
    std::error_code none;
    const auto size = std::filesystem::file_size(counter + ".holds", none);
    return none ? 0 : size;
  };
  const auto goes_on = [&] {
    const auto before = turns();
    return eventually(
        "the child goes on", [&] { return turns() > before; }, 25s);
  };
  ASSERT_TRUE(goes_on());
  for (int round = 0; round < 2; ++round) {
    server.kill(0);
    // The client retries for a while with the clock ahead. Then the clock is set right.
    set_clock(clock, 3600);
    pass(2s);
    set_clock(clock, 0);
    server.start(0);
    EXPECT_TRUE(goes_on());
  }
}

}  // namespace
}  // namespace baton::chaos
