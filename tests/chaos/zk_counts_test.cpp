// What a lock costs a ZooKeeper server: requests counted on the wire and by the server itself.
#include "chaos/grants.h"
#include "chaos/zk_tap.h"
#include "support/boot_clock.h"
#include "support/eventually.h"
#include "support/zk_server.h"

#include <baton/baton.h>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::kLong;
using test::Stopwatch;

constexpr auto kSession = 80s;  // a heartbeat every 10 s, a look of the backstop after 22 s
constexpr auto kYoung = 100ms;  // a hold is not watched before this age

test::ZkOptions quiet_server() {
  test::ZkOptions options;
  options.max_session = kSession;
  // Directories stay for the whole test, because the cost of creating them is not counted here.
  options.jvm = {"-Dznode.container.checkIntervalMs=3600000"};
  return options;
}

// One server for all tests of this process.
test::ZkEnsemble& server() {
  static test::ZkEnsemble one(quiet_server());
  return one;
}

// A client whose messages are counted.
class Tapped {
 public:
  explicit Tapped(std::chrono::milliseconds session = kSession)
      : tap_(server().client_port(0)),
        client_(Client::connect("zk://" + tap_.host() + "/counts", options(session))) {}

  Client& client() { return client_; }
  DistributedMutex mutex(const std::string& name) { return client_.mutex(name); }
  Traffic seen() const { return tap_.seen(); }
  bool answered() const { return tap_.answered(); }
  Traffic since(const Traffic& before) const { return (seen() - before).business(); }

 private:
  static ClientOptions options(std::chrono::milliseconds session) {
    ClientOptions options;
    options.session_timeout = session;
    return options;
  }
  Tap tap_;
  Client client_;
};

class ZkCounts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::zk_installed()) GTEST_FAIL() << "no ZooKeeper server: install zookeeper and a JRE";
    ASSERT_TRUE(eventually("former clients are gone", [] { return packets_of_all() == 0; }));
    name_ =
        std::string("counted-") + ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }

  // Packets from all connections that have a session, as the server counts them.
  static std::int64_t packets_of_all() {
    std::int64_t all = 0;
    for (const auto& c : server().connections(0)) {
      if (c.session != 0) all += static_cast<std::int64_t>(c.received);
    }
    return all;
  }

  // Creates the directory of the lock.
  void make_directory(Tapped& who) { who.mutex(name_).acquire({.timeout = kLong}).release(); }

  // The waiter is parked and has set both its watches.
  static void expect_parked(const Tapped& who, const Traffic& before) {
    ASSERT_TRUE(
        eventually("both watches", [&] { return who.since(before).get >= 2 && who.answered(); }));
    EXPECT_EQ(who.since(before), (Traffic{.create = 1, .list = 1, .get = 2}));
  }

  std::string name_;
};

TEST_F(ZkCounts, AFreeLockCostsCreateListAndDelete) {
  constexpr int kRounds = 200;
  constexpr auto kBeat = 1000ms;  // so short that heartbeats come during the test
  Tapped a(8 * kBeat);
  make_directory(a);
  const Traffic before = a.seen();
  std::int64_t server_before = 0;
  ASSERT_TRUE(eventually("the server has counted all", [&] {
    server_before = packets_of_all();
    return server_before >= a.seen().packets();
  }));
  const std::int64_t apart = server_before - a.seen().packets();

  auto mutex = a.mutex(name_);
  int old = 0;  // holds that may have been watched, because the machine was busy
  const Stopwatch all;
  for (int i = 0; i < kRounds; ++i) {
    const Stopwatch watch;
    mutex.acquire({.timeout = kLong}).release();
    old += watch.elapsed() >= kYoung ? 1 : 0;
  }
  const auto took = all.elapsed();

  const Traffic cost = a.since(before);
  EXPECT_EQ(cost.create, kRounds);
  EXPECT_EQ(cost.list, kRounds);
  EXPECT_EQ(cost.remove, kRounds);
  EXPECT_LE(cost.get, old);
  EXPECT_EQ(cost.requests(), 3 * kRounds + cost.get);
  EXPECT_EQ(cost.events, cost.get);
  // The server's count is the same, with the heartbeats.
  Traffic seen;
  EXPECT_TRUE(eventually("both counts agree", [&] {
    seen = a.seen();
    return packets_of_all() == seen.packets() + apart;
  }));
  const Traffic beats = seen - before;
  EXPECT_LE(beats.beats + beats.proofs, 2 + 2 * (all.elapsed() / kBeat));
  std::printf("%d acquires and releases in %lld ms: %s\n", kRounds,
              static_cast<long long>(took.count()), ::testing::PrintToString(beats).c_str());
}

TEST_F(ZkCounts, AFailedTryCostsSyncAndListAndWritesNothing) {
  constexpr int kRounds = 50;
  Tapped a;
  Tapped b;
  const auto held = a.mutex(name_).acquire({.timeout = kLong});
  const Traffic before = b.seen();
  auto mutex = b.mutex(name_);
  for (int i = 0; i < kRounds; ++i) ASSERT_FALSE(mutex.try_acquire().has_value());
  EXPECT_EQ(b.since(before), (Traffic{.list = kRounds, .sync = kRounds}));
  EXPECT_EQ((b.seen() - before).proofs, 0);
}

TEST_F(ZkCounts, AParkedWaiterAsksFourTimesAndThenIsSilent) {
  Tapped a;
  Tapped b(16s);  // a heartbeat every 2 s, a look of the backstop after 6 s
  auto held = a.mutex(name_).acquire({.timeout = kLong});
  const Traffic before = b.seen();
  Waiter waiter(b.mutex(name_));
  expect_parked(b, before);
  const auto beats = [&] { return b.seen().beats + b.seen().proofs; };
  const auto first = beats();
  ASSERT_TRUE(eventually("two heartbeats", [&] { return beats() >= first + 2; }));
  EXPECT_EQ(b.since(before), (Traffic{.create = 1, .list = 1, .get = 2}));
  held.release();
  EXPECT_TRUE(eventually("granted", [&] { return waiter.granted(); }));
}

TEST_F(ZkCounts, HandOverToTheNextInLineCostsItNoRequest) {
  Tapped a;
  Tapped b;
  auto held = a.mutex(name_).acquire({.timeout = kLong});
  const Traffic joined = b.seen();
  Waiter waiter(b.mutex(name_));
  expect_parked(b, joined);
  const Traffic before = b.seen();
  held.release();
  ASSERT_TRUE(eventually("granted", [&] { return waiter.granted(); }));
  // The delete is sent after all requests of the acquire.
  waiter.release();
  EXPECT_TRUE(eventually("word of both nodes", [&] { return b.since(before).events == 2; }));
  EXPECT_EQ(b.since(before), (Traffic{.remove = 1, .events = 2}));
}

// If a waiter joined behind two entries and the nearer one goes, it cannot know whether both are
// gone.
TEST_F(ZkCounts, HandOverToWhoJoinedBehindTwoCostsItOneList) {
  Tapped a;
  Tapped b;
  Tapped c;
  auto held = a.mutex(name_).acquire({.timeout = kLong});
  const Traffic b_before = b.seen();
  Waiter second(b.mutex(name_));
  expect_parked(b, b_before);
  const Traffic c_before = c.seen();
  Waiter third(c.mutex(name_));
  expect_parked(c, c_before);
  const Traffic parked = c.seen();
  held.release();
  ASSERT_TRUE(eventually("granted", [&] { return second.granted(); }));
  EXPECT_EQ(c.since(parked), Traffic{});
  second.release();
  ASSERT_TRUE(eventually("granted", [&] { return third.granted(); }));
  third.release();
  EXPECT_TRUE(eventually("word of both nodes", [&] { return c.since(parked).events == 2; }));
  EXPECT_EQ(c.since(parked), (Traffic{.remove = 1, .list = 1, .events = 2}));
}

TEST_F(ZkCounts, AHoldThatGrowsOldIsWatchedAtTheCostOfOneRead) {
  Tapped a;
  make_directory(a);
  const Traffic before = a.seen();
  auto held = a.mutex(name_).acquire({.timeout = kLong});
  ASSERT_TRUE(eventually("a watch", [&] { return a.since(before).get == 1; }));
  held.release();
  EXPECT_TRUE(eventually("its own word", [&] { return a.since(before).events == 1; }));
  EXPECT_EQ(a.since(before), (Traffic{.create = 1, .remove = 1, .list = 1, .get = 1, .events = 1}));
}

// ---- a thousand waiters

constexpr std::size_t kClients = 10;
constexpr std::size_t kWaiters = 1000;

// Ten clients whose waiters join in turns, so neighbours in the queue belong to different clients.
class Line {
 public:
  // Client 0 holds the lock; waiter i belongs to client i % kClients. Returns when all are parked.
  explicit Line(const std::string& name) {
    for (std::size_t i = 0; i < kClients; ++i) clients_.push_back(std::make_unique<Tapped>());
    const std::int64_t connected = sum().get;  // each client has read the record of the token base
    EXPECT_EQ(connected, static_cast<std::int64_t>(kClients));
    first_ = clients_[0]->mutex(name).acquire({.timeout = kLong});
    EXPECT_TRUE(
        eventually("the first hold is watched", [&] { return sum().get == connected + 1; }));
    for (std::size_t i = 1; i <= kWaiters; ++i) {
      waiters_.push_back(std::make_unique<Waiter>(clients_[i % kClients]->mutex(name)));
      // A waiter has made two reads when it is parked.
      const auto gets = connected + static_cast<std::int64_t>(2 * i + 1);
      if (!eventually(
              "parked", [&] { return sum().get == gets; }, 10s))
        return;
    }
    parked_ = true;
  }
  bool parked() const { return parked_; }

  std::vector<Traffic> seen() const {
    std::vector<Traffic> all;
    for (const auto& c : clients_) all.push_back(c->seen());
    return all;
  }
  Traffic sum() const { return sum_of(seen()).business(); }
  static Traffic sum_of(const std::vector<Traffic>& all) {
    Traffic total;
    for (const Traffic& t : all) total = total + t;
    return total;
  }

  // The k-th holder releases the lock; 0 is the first holder.
  void release(std::size_t k) { k == 0 ? first_.release() : waiters_[k - 1]->release(); }
  bool granted(std::size_t k) const { return waiters_[k - 1]->granted(); }
  std::size_t holders() const {
    std::size_t n = 0;
    for (const auto& w : waiters_) n += w->granted() ? 1U : 0U;
    return n;
  }

 private:
  std::vector<std::unique_ptr<Tapped>> clients_;
  Lock first_;
  std::vector<std::unique_ptr<Waiter>> waiters_;
  bool parked_ = false;
};

TEST_F(ZkCounts, AReleaseWakesOneOfAThousandWaiters) {
  const Stopwatch joining;
  Line line(name_);
  ASSERT_TRUE(line.parked());
  const auto joined = joining.elapsed();
  const Stopwatch watch;
  std::int64_t lists = 0;
  const Traffic start = line.sum();
  for (std::size_t k = 0; k < kWaiters; ++k) {
    const std::size_t from = k % kClients;
    const std::size_t to = (k + 1) % kClients;
    const auto before = line.seen();
    line.release(k);
    ASSERT_TRUE(eventually("the next one holds it", [&] { return line.granted(k + 1); }));
    // One event for the next waiter and one for the owner of the node. They use different
    // connections.
    const auto events = static_cast<std::int64_t>(2 * (k + 1));
    ASSERT_TRUE(eventually("both events", [&] { return (line.sum() - start).events >= events; }));
    const auto after = line.seen();
    for (std::size_t i = 0; i < kClients; ++i) {
      Traffic t = (after[i] - before[i]).business();
      lists += t.list;
      t.list = 0;  // checked below, with the looks of the backstop
      Traffic wanted;
      if (i == from) wanted = {.remove = 1, .events = 1};
      if (i == to) wanted = {.events = 1};
      ASSERT_EQ(t, wanted) << "client " << i << " at release " << k;
    }
  }
  const auto took = watch.elapsed();
  EXPECT_EQ(line.holders(), kWaiters);
  // Each waiter that joined behind more than one entry looks once. The backstop of each client may
  // look, too.
  const auto looks = static_cast<std::int64_t>(kWaiters - 1);
  const auto backstops = static_cast<std::int64_t>(kClients) * ((joined + took) / 22s);
  EXPECT_GE(lists, looks);
  EXPECT_LE(lists, looks + backstops);
  std::printf("1000 joins in %lld ms, 1000 hand-overs in %lld ms: %s\n",
              static_cast<long long>(joined.count()), static_cast<long long>(took.count()),
              ::testing::PrintToString(line.sum() - start).c_str());
  line.release(kWaiters);
}

}  // namespace
}  // namespace baton::chaos
