// Servers and clients that die, stop and come back under a crowd that takes locks all the time: no
// two holds overlap, tokens rise, nothing is left in line, and everybody goes on.
#include "chaos/zk_faults.h"

#include "chaos/process.h"
#include "support/boot_clock.h"
#include "support/eventually.h"
#include "support/temp_dir.h"

#include <signal.h>
#include <sys/wait.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <functional>
#include <string_view>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::boot_now;
using test::eventually;
using test::kLong;
using test::Stopwatch;

// A process of ours that holds a lock; killed and reaped at the latest by the destructor.
class HoldingChild {
 public:
  HoldingChild(const std::string& hosts, const std::string& root, const std::string& name)
      : pid_(start_self({"--hold", hosts, root, name, record()})) {}
  ~HoldingChild() {
    if (pid_ > 0) kill_and_reap(pid_);
  }
  HoldingChild(const HoldingChild&) = delete;
  HoldingChild& operator=(const HoldingChild&) = delete;

  std::string record() const { return directory_ / "record"; }  // written when it has lost the lock
  ::testing::AssertionResult wait_held() const {
    return eventually("the child to hold",
                      [&] { return std::filesystem::exists(record() + ".held"); });
  }
  bool stop() const {
    ::kill(pid_, SIGSTOP);
    int status = 0;
    return ::waitpid(pid_, &status, WUNTRACED) == pid_ && WIFSTOPPED(status);
  }
  void go_on() const { ::kill(pid_, SIGCONT); }
  void kill() { EXPECT_EQ(kill_and_reap(std::exchange(pid_, -1)), 128 + SIGKILL); }
  std::optional<int> end() {
    const auto code = wait_for_end(pid_, kLong);
    if (code) pid_ = -1;
    return code;
  }

 private:
  const test::TempDir directory_;
  pid_t pid_;
};

::testing::AssertionResult wait_until(const Stopwatch& watch, std::chrono::milliseconds time) {
  return eventually("time to pass", [&] { return watch.elapsed() >= time; });
}

class ZkFaultsCrowd : public ZkFaults {
 protected:
  // The fault comes while somebody has the first lock and keeps it as long as it is valid, and the
  // second one goes from hand to hand.
  static void with_crowd(const std::function<void(Crowd&)>& fault, bool linger = true) {
    Crowd crowd(zk(), fresh_zk_root());
    auto observer = connect_quietly(zk().hosts(), crowd.root(), "observer");
    ASSERT_TRUE(crowd.everybody_goes_on());
    if (linger) {
      ASSERT_TRUE(crowd.linger(true));
    }
    const Stopwatch watch;
    fault(crowd);
    std::printf("[          ] healed after %lld ms\n",
                static_cast<long long>(watch.elapsed().count()));
    EXPECT_TRUE(crowd.linger(false));
    EXPECT_TRUE(crowd.everybody_goes_on()) << zk().tails();
    crowd.stop();
    EXPECT_TRUE(nobody_in_line(observer));
    for (int lock = 0; lock < Crowd::kLocks; ++lock) {
      EXPECT_TRUE(crowd.holds(lock).exclusive_and_ordered()) << Crowd::name(lock);
    }
    std::printf("[          ] %zu and %zu holds, %d lost, after %lld ms\n", crowd.holds(0).size(),
                crowd.holds(1).size(), crowd.lost(),
                static_cast<long long>(watch.elapsed().count()));
  }
};

TEST_F(ZkFaultsCrowd, GoesOnWhenTheLeaderIsKilledAndRestarted) {
  with_crowd([](Crowd& crowd) {
    const int leader = zk().leader();
    zk().kill(leader);
    EXPECT_TRUE(crowd.goes_on(1));
    zk().start(leader);
    zk().wait_synced();
  });
}

TEST_F(ZkFaultsCrowd, GoesOnWhenTheLeaderStopsForTwoTimeoutsAndComesBack) {
  with_crowd([](Crowd& crowd) {
    const int leader = zk().leader();
    const Stopwatch watch;
    zk().pause(leader);
    EXPECT_TRUE(crowd.goes_on(1));
    EXPECT_TRUE(wait_until(watch, 2 * kZkTimeout));
    zk().resume(leader);
    zk().wait_synced();
  });
}

TEST_F(ZkFaultsCrowd, GoesOnWhenAFollowerIsCutOff) {
  with_crowd([](Crowd& crowd) {
    const Stopwatch watch;
    zk().isolate(crowd.busiest(zk().leader()));
    EXPECT_TRUE(crowd.goes_on(1));
    EXPECT_TRUE(wait_until(watch, kZkTimeout + 2 * kZkTick));
    zk().heal_all();
    zk().wait_synced();
  });
}

TEST_F(ZkFaultsCrowd, GoesOnWhenAllServersAreKilledAndRestarted) {
  with_crowd([](Crowd&) {
    for (int i = 0; i < zk().size(); ++i) zk().kill(i);
    for (int i = 0; i < zk().size(); ++i) zk().start(i, false);
    zk().wait_synced();
  });
}

TEST_F(ZkFaultsCrowd, GoesOnWhenAHolderIsCutOffSilently) {
  with_crowd([](Crowd& crowd) {
    const Stopwatch watch;
    const auto& proxies = crowd.proxies(crowd.lingerer());
    for (const auto& proxy : proxies) {
      proxy->blackhole(test::Direction::kToServer);
      proxy->blackhole(test::Direction::kToClient);
    }
    EXPECT_TRUE(wait_until(watch, kZkTimeout + 2 * kZkTick));
    for (const auto& proxy : proxies) proxy->heal();
    EXPECT_GE(crowd.lost(), 1);
  });
}

TEST_F(ZkFaultsCrowd, AStoppedProcessWakesUpWithoutItsLock) {
  with_crowd(
      [](Crowd& crowd) {
        HoldingChild child(zk().hosts(), crowd.root(), Crowd::name(0));
        ASSERT_TRUE(child.wait_held());
        const Stopwatch watch;
        ASSERT_TRUE(child.stop());
        EXPECT_TRUE(crowd.goes_on(0));
        EXPECT_TRUE(wait_until(watch, 2 * kZkTimeout));
        child.go_on();
        EXPECT_EQ(child.end(), 0);
        const auto before = crowd.holds(0).size();
        crowd.holds(0).add_file(child.record());
        EXPECT_GT(crowd.holds(0).size(), before);
      },
      false);
}

// The contract: the entry of a crashed holder is gone within the session timeout and 1.5 ticks.
TEST(ZkCrash, TheNextOneHoldsWithinTheTimeoutAndOneAndAHalfTicks) {
  if (!test::zk_installed()) GTEST_SKIP() << "no ZooKeeper on this machine";
  constexpr auto kTick = 2s;
  constexpr auto kBound = kZkTimeout + kTick * 3 / 2;
  constexpr auto kSlack = 250ms;  // for watches to be told, and for threads to be run
  test::ZkOptions options;
  options.servers = 3;
  options.tick = kTick;
  test::ZkEnsemble zk(options);
  const std::string root = fresh_zk_root();
  std::vector<std::atomic<std::int64_t>> granted(3);
  std::vector<std::int64_t> killed;
  std::vector<std::unique_ptr<HoldingChild>> children;
  auto client = connect_quietly(zk.hosts(), root, "next");
  for (int i = 0; i < zk.size(); ++i) {  // one on each server
    const std::string name = "crash" + std::to_string(i);
    children.push_back(std::make_unique<HoldingChild>(zk.host(i), root, name));
    ASSERT_TRUE(children.back()->wait_held());
    auto& when = granted[static_cast<std::size_t>(i)];
    client.mutex(name).acquire_async(
        {}, [&when](const Result<Lock>& lock) { when = lock ? boot_now().count() : -1; });
    ASSERT_TRUE(
        eventually("next in line", [&] { return client.inspect(name).entries.size() == 2; }));
  }
  for (const auto& child : children) {
    killed.push_back(boot_now().count());
    child->kill();
  }
  for (std::size_t i = 0; i < granted.size(); ++i) {
    ASSERT_TRUE(eventually("the next one to hold", [&] { return granted[i] != 0; }));
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::nanoseconds(granted[i] - killed[i]));
    std::printf("[          ] the next one held after %lld ms\n",
                static_cast<long long>(took.count()));
    EXPECT_GT(granted[i], 0);
    EXPECT_LE(took, kBound + kSlack);
  }
}

}  // namespace
}  // namespace baton::chaos

int main(int argc, char** argv) {
  if (argc == 7 && std::string_view(argv[1]) == "--hold") {
    try {
      baton::chaos::end_with_parent(argv[6]);
      return baton::chaos::hold_role({argv + 2, argv + 6});
    } catch (const std::exception& e) {
      std::fprintf(stderr, "baton_zk_faults --hold: %s\n", e.what());
      return 1;
    }
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
