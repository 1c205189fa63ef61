// The deadline of a hold on ZooKeeper, when servers lose each other: valid() must be false before
// the majority can give the lock to somebody else. Session timeout 4 s on a stock tick of 2 s.
//
// BATON_RUNS=20 baton_zk_deadline: so many cuts of each kind, and the margin of each.
#include "chaos/zk_deadline.h"

#include "support/boot_clock.h"
#include "support/eventually.h"
#include "support/intervals.h"
#include "support/zk_server.h"

#include <baton/baton.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using test::boot_now;
using test::eventually;
using test::Interval;
using test::Intervals;

constexpr milliseconds kTimeout = 4s;
constexpr milliseconds kTick = 2s;
constexpr milliseconds kPing = kTick / 2;  // a leader asks its followers who is alive

Client connect(const std::string& hosts, const std::string& root, const std::string& label) {
  ClientOptions options;
  options.session_timeout = kTimeout;
  options.connect_timeout = 20s;
  options.label = label;
  options.log = [](LogLevel, std::string_view) {};  // of each cut
  return Client::connect("zk://" + hosts + root, options);
}

// Takes a lock of its own and keeps it, with a session of its own.
class Holder {
 public:
  Holder(const std::string& hosts, const std::string& root, const std::string& name)
      : client_(connect(hosts, root, "holder")),
        lock_(client_.mutex(name).acquire({.timeout = 20s})),
        begin_(boot_now()),
        node_(root + "/" + name + "/" + client_.inspect(name).entries.at(0).id) {}

  const Lock& lock() const { return lock_; }
  bool was_told() const { return lock_.lost_token().stop_requested(); }
  Interval interval(const Verdict& verdict) const { return {begin_, verdict.until, lock_.token()}; }
  Believer believer() const {
    return {node_, [this]() -> std::optional<nanoseconds> {
              if (!lock_.valid()) return std::nullopt;
              return lock_.valid_for() + 1ms;  // it is rounded down
            }};
  }

 private:
  Client client_;
  Lock lock_;
  nanoseconds begin_;
  std::string node_;
};

// Waits for a lock and keeps it.
class Next {
 public:
  Next(Client& client, const std::string& name) {
    client.mutex(name).acquire_async({}, [this](Result<Lock> result) {
      const std::lock_guard guard(mutex_);
      begin_ = boot_now();
      lock_ = std::move(result).value();
    });
  }
  bool granted() const {
    const std::lock_guard guard(mutex_);
    return lock_.token() != 0;
  }
  // What it has had so far.
  Interval interval() const {
    const std::lock_guard guard(mutex_);
    return {begin_, boot_now(), lock_.token()};
  }

 private:
  mutable std::mutex mutex_;
  nanoseconds begin_{};
  Lock lock_;
};

// What a scenario does, and to whom.
struct Setting {
  int victim = 0;        // the holders know this server only
  std::string majority;  // those who see the node go, and who wait
  int holders = 4;
  std::function<void()> before;  // nobody has connected yet
  std::function<void()> cut;
  bool naive = false;   // with somebody who trusts his connection
  bool stalls = false;  // first; who loses his lock in the stall gives it up by himself
};

class ZkDeadline : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!test::zk_installed()) return;
    test::ZkOptions options;
    options.servers = 3;
    options.peer_proxies = true;
    options.tick = kTick;
    zk_ = std::make_unique<test::ZkEnsemble>(options);
  }
  static void TearDownTestSuite() { zk_.reset(); }

  void SetUp() override {
    if (!zk_) GTEST_SKIP() << "no ZooKeeper on this machine";
  }
  void TearDown() override {
    if (zk_) zk_->heal_all();
  }

  static test::ZkEnsemble& zk() { return *zk_; }
  static std::string all_but(int server) {
    std::string hosts;
    for (int i = 0; i < zk().size(); ++i) {
      if (i != server) hosts += (hosts.empty() ? "" : ",") + zk().host(i);
    }
    return hosts;
  }

  // One cut; adds its margins.
  static void trial(int run, const Setting& setting, Margins& margins);

 private:
  static std::unique_ptr<test::ZkEnsemble> zk_;
};
std::unique_ptr<test::ZkEnsemble> ZkDeadline::zk_;

// A name that no run before has used.
std::string fresh_root() {
  static int next = 0;
  return "/deadline-" + std::to_string(next++);
}

void ZkDeadline::trial(int run, const Setting& setting, Margins& margins) {
  const std::string root = fresh_root();
  const auto name = [](int i) { return "lock" + std::to_string(i); };
  if (setting.before) setting.before();

  Client next_client = connect(setting.majority, root, "next");
  std::vector<std::unique_ptr<Holder>> holders;
  for (int i = 0; i < setting.holders; ++i) {
    // Their heartbeats are spread over one interval, an eighth of the timeout.
    wait_for_phase(kTimeout / 8 * i / setting.holders, kTimeout / 8);
    holders.push_back(std::make_unique<Holder>(zk().host(setting.victim), root, name(i)));
  }
  std::vector<std::unique_ptr<Next>> nexts;
  for (int i = 0; i < setting.holders; ++i) {
    nexts.push_back(std::make_unique<Next>(next_client, name(i)));
  }
  for (int i = 0; i < setting.holders; ++i) {
    ASSERT_TRUE(eventually("a waiter in line",
                           [&] { return next_client.inspect(name(i)).entries.size() == 2; }));
  }
  std::vector<Believer> believers;
  for (const auto& holder : holders) believers.push_back(holder->believer());
  std::unique_ptr<test::ZkTestClient> naive;
  if (setting.naive) {
    naive = std::make_unique<test::ZkTestClient>(zk().host(setting.victim), kTimeout);
    ASSERT_EQ(naive->create(root + "/naive", "", ZOO_EPHEMERAL), ZOK);
    believers.push_back({root + "/naive", [&naive]() -> std::optional<nanoseconds> {
                           if (!naive->connected()) return std::nullopt;
                           return 0ns;
                         }});
  }

  Trial trial(believers, setting.majority);
  setting.cut();
  const nanoseconds cut = boot_now();
  ASSERT_TRUE(eventually(
      "all nodes gone", [&] { return trial.all_gone(); }, 60s));
  ASSERT_TRUE(eventually("all locks granted again", [&] {
    return std::all_of(nexts.begin(), nexts.end(), [](const auto& n) { return n->granted(); });
  }));
  // They should have long ended; if not, this tells by how much.
  EXPECT_TRUE(eventually(
      "the holders to stop believing", [&] { return trial.ended(holders.size()); }, kTimeout));
  const auto verdicts = trial.verdicts();
  std::vector<double> found;
  double until = 0;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    const Verdict& verdict = verdicts[i];
    SCOPED_TRACE("run " + std::to_string(run) + ", holder " + std::to_string(i));
    EXPECT_FALSE(verdict.came_back);
    EXPECT_TRUE(eventually(
        "to be told of the loss", [&] { return holders[i]->was_told(); }, 1s));
    Intervals intervals;
    intervals.add(holders[i]->interval(verdict));
    intervals.add(nexts[i]->interval());
    EXPECT_TRUE(intervals.exclusive_and_ordered());
    if (setting.stalls && verdict.until < cut) continue;  // it has removed its node itself
    EXPECT_GT(verdict.until, cut);
    EXPECT_GT(verdict.margin_ms(), 0);
    found.push_back(verdict.margin_ms());
    until = std::max(until, std::chrono::duration<double>(verdict.until - cut).count());
  }
  char aside[160];
  int used = std::snprintf(aside, sizeof aside, "; valid for up to %.2f s after the cut", until);
  if (setting.naive) {
    // The same check on somebody without a deadline of his own: it must object.
    const auto naive_margin = [&] { return trial.verdicts().back().margin_ms(); };
    EXPECT_TRUE(eventually(
        "a second of wrong belief", [&] { return naive_margin() < -1000; }, 2s))
        << "the check sees nothing";
    std::snprintf(aside + used, sizeof aside - static_cast<std::size_t>(used),
                  "; who trusts his connection: %.0f ms and believes on", naive_margin());
  }
  margins.add(run, found, aside);

  zk().heal_all();
  zk().wait_synced();
  std::vector<std::jthread> closing;  // each may take seconds
  for (auto& holder : holders) closing.emplace_back([&holder] { holder.reset(); });
}

// Cuts come at all moments between two ticks of the servers, however few they are.
milliseconds phase(int run) {
  static const auto first = milliseconds(boot_now().count() / 1'000 % 2'000);
  return (first + milliseconds(kTick) * run / runs()) % milliseconds(kTick);
}

TEST_F(ZkDeadline, AHolderOnAFollowerThatIsCutOffSilentlyStopsBelievingFirst) {
  Margins margins("follower cut off");
  for (int run = 0; run < runs() && !HasFatalFailure(); ++run) {
    Setting setting;
    const int leader = zk().leader();
    setting.victim = zk().a_follower();
    setting.majority = zk().host(leader);
    setting.naive = true;
    setting.cut = [&] {
      wait_for_phase(phase(run), kTick);
      zk().link(leader, setting.victim).blackhole();
    };
    trial(run, setting, margins);
  }
}

TEST_F(ZkDeadline, AHolderOnALeaderThatIsCutOffSilentlyStopsBelievingFirst) {
  Margins margins("leader cut off");
  for (int run = 0; run < runs() && !HasFatalFailure(); ++run) {
    Setting setting;
    setting.victim = zk().leader();
    setting.majority = all_but(setting.victim);
    setting.cut = [&] {
      wait_for_phase(phase(run), kTick);
      zk().isolate(setting.victim);
    };
    trial(run, setting, margins);
  }
}

// The followers notice at once, and elect another one while the old leader still serves.
TEST_F(ZkDeadline, AHolderOnALeaderWhoseConnectionsAreResetStopsBelievingFirst) {
  Margins margins("leader's connections reset");
  for (int run = 0; run < runs() && !HasFatalFailure(); ++run) {
    Setting setting;
    setting.victim = zk().leader();
    setting.majority = all_but(setting.victim);
    setting.cut = [&] {
      wait_for_phase(phase(run), kTick);
      for (int i = 0; i < zk().size(); ++i) {
        if (i == setting.victim) continue;
        const auto link = zk().link(i, setting.victim);
        if (run % 2 == 0) {  // new ones go nowhere
          link.blackhole();
          link.reset();
        } else {  // new ones are reset as well
          link.reset();
          link.cut();
        }
      }
    };
    trial(run, setting, margins);
  }
}

// The followers elect another one, and the old leader hears nothing of it: it says yes to all that
// it need not ask them, for five ticks.
TEST_F(ZkDeadline, AHolderOnALeaderThatIsReplacedWithoutItsKnowledgeStopsBelievingFirst) {
  Margins margins("leader cut off, followers restarted");
  for (int run = 0; run < runs() && !HasFatalFailure(); ++run) {
    Setting setting;
    setting.victim = zk().leader();
    setting.majority = all_but(setting.victim);
    setting.cut = [&] {
      wait_for_phase(phase(run), kTick);
      zk().isolate(setting.victim);
      for (int i = 0; i < zk().size(); ++i) {
        if (i == setting.victim) continue;
        zk().kill(i);
        zk().start(i, false);
      }
    };
    trial(run, setting, margins);
  }
}

// The worst there is: an answer that was held back proves to the client that the leader had its
// request, but the leader counts the session from the last time it asked the follower, and the
// follower's next word is lost. All moments are chosen to make it worse: the stall begins right
// before the leader asks, and the last time it did is right before the end of one of its ticks, so
// that it rounds up by almost nothing.
TEST_F(ZkDeadline, AHeldBackAnswerAndThenACutDoNotMakeAHolderBelieveTooLong) {
  Margins margins("follower stalled, then cut off");
  for (int run = 0; run < runs() && !HasFatalFailure(); ++run) {
    Setting setting;
    const int leader = zk().leader();
    setting.victim = zk().a_follower();
    setting.majority = zk().host(leader);
    setting.holders = 8;
    setting.stalls = true;
    const auto link = zk().link(leader, setting.victim);
    // The nearer to the end of the tick the worse, but what comes after it has 2 s more.
    const auto asked = kTick - 85ms + milliseconds(run % 4) * 20;
    setting.before = [&] {
      // A leader that was paused asks as soon as it is resumed, and then every half tick.
      zk().pause(leader);
      std::this_thread::sleep_for(kPing + 100ms);
      wait_for_phase(asked, kTick);
      zk().resume(leader);
    };
    setting.cut = [&] {
      wait_for_phase(asked - 15ms, kTick);  // to open a session counts as well
      wait_for_phase((asked + kPing - 15ms) % kTick, kTick);
      link.stall(leader);
      // All just outlive the shorter stall, some the longer one.
      std::this_thread::sleep_for(run % 2 == 0 ? 1900ms : 2300ms);
      link.blackhole(setting.victim);
      link.resume(leader);
    };
    trial(run, setting, margins);
  }
  EXPECT_FALSE(margins.empty()) << "nobody outlived a stall";
}

}  // namespace
}  // namespace baton::chaos
