// What a lock costs an etcd server: calls and messages, from the server's own counters.
#include "chaos/grants.h"
#include "support/boot_clock.h"
#include "support/child.h"
#include "support/etcd_server.h"
#include "support/eventually.h"

#include <baton/baton.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::kLong;
using test::Stopwatch;

constexpr auto kSession = 90s;  // the keepalives and the looks of the backstop come every 30 s
constexpr auto kYoung = 100ms;  // a hold or a waiter's own key is not watched before this age

// gRPC's own pools grow up to the number of processors when it is busy, but not with the waiters.
constexpr int kPools = 2;

// One server for all tests of this process.
test::EtcdCluster& server() {
  static test::EtcdCluster one;
  return one;
}

struct Counted {
  std::int64_t txn = 0;
  std::int64_t range = 0;
  std::int64_t other = 0;   // all other unary calls
  std::int64_t watch = 0;   // messages from clients on watch streams: create and cancel
  std::int64_t events = 0;  // messages to clients on watch streams: created, cancelled, and events
  bool operator==(const Counted&) const = default;
};

Counted operator-(const Counted& a, const Counted& b) {
  return {a.txn - b.txn, a.range - b.range, a.other - b.other, a.watch - b.watch,
          a.events - b.events};
}

std::ostream& operator<<(std::ostream& out, const Counted& c) {
  return out << "txn " << c.txn << ", range " << c.range << ", other calls " << c.other
             << ", watch messages " << c.watch << " in and " << c.events << " out";
}

// Reading the counters does not change them.
Counted counted() {
  auto& etcd = server();
  Counted now;
  now.txn = etcd.unary_calls(0, "KV", "Txn");
  now.range = etcd.unary_calls(0, "KV", "Range");
  now.other =
      static_cast<std::int64_t>(etcd.metric(0, R"(grpc_server_started_total{grpc_type="unary"})")) -
      now.txn - now.range;
  now.watch = etcd.messages_received(0, "Watch", "Watch");
  now.events = etcd.messages_sent(0, "Watch", "Watch");
  return now;
}

class EtcdCounts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::etcd_installed()) GTEST_SKIP() << "no etcd on this machine";
    ASSERT_TRUE(eventually("former clients are gone", [] {
      return server().open_streams(0, "Watch", "Watch") == 0 && server().watchers(0) == 0;
    }));
    name_ =
        std::string("counted-") + ::testing::UnitTest::GetInstance()->current_test_info()->name();
  }
  static Client connect() {
    ClientOptions options;
    options.session_timeout = kSession;
    options.connect_timeout = kLong;
    return Client::connect("etcd://" + server().hosts() + "/counts", options);
  }
  // Waits until there was no request for this long. Returns the counters of that moment in `then`.
  static ::testing::AssertionResult silence(std::chrono::milliseconds time, Counted& then) {
    return eventually("silence", [&] {
      then = counted();
      std::this_thread::sleep_for(time);
      return counted() == then;
    });
  }
  static void report(const std::string& what, const Stopwatch& watch, const Counted& cost) {
    std::printf("[          ] %s in %lld ms: %s\n", what.c_str(),
                static_cast<long long>(watch.elapsed().count()),
                ::testing::PrintToString(cost).c_str());
  }

  std::string name_;
};

TEST_F(EtcdCounts, AFreeLockCostsTwoTransactions) {
  constexpr int kRounds = 200;
  auto client = connect();
  auto mutex = client.mutex(name_);
  int old = 0;  // holds that may have been watched, because the machine was busy
  const Counted before = counted();
  const Stopwatch all;
  for (int i = 0; i < kRounds; ++i) {
    const Stopwatch watch;
    mutex.acquire({.timeout = kLong}).release();
    old += watch.elapsed() >= kYoung ? 1 : 0;
  }
  const Counted cost = counted() - before;
  report(std::to_string(kRounds) + " acquires and releases", all, cost);
  EXPECT_EQ(cost.txn, 2 * kRounds);
  EXPECT_EQ(cost.range, 0);
  EXPECT_EQ(cost.other, 0);
  EXPECT_LE(cost.watch, 2 * old);
}

// etcd keeps the names of deleted keys until a compaction, and every read of the lock walks over
// them.
TEST_F(EtcdCounts, AThousandAcquiresUseOneName) {
  auto client = connect();
  auto mutex = client.mutex(name_);
  std::set<std::string> names;
  for (int i = 0; i < 1'000; ++i) {
    auto lock = mutex.acquire({.timeout = kLong});
    const auto entries = client.inspect(name_).entries;
    ASSERT_EQ(entries.size(), 1u);
    names.insert(entries[0].id.substr(0, entries[0].id.find('@')));
    lock.release();
  }
  EXPECT_EQ(names.size(), 1u) << "the lease changes only if a transaction was abandoned";
}

TEST_F(EtcdCounts, AFailedTryCostsOneRangeAndWritesNothing) {
  constexpr int kRounds = 50;
  auto client = connect();
  auto other = connect();
  const auto held = other.mutex(name_).acquire({.timeout = kLong});
  ASSERT_TRUE(eventually("the hold is watched", [] { return server().watchers(0) == 1; }));
  auto mutex = client.mutex(name_);
  const Stopwatch watch;
  const Counted before = counted();
  for (int i = 0; i < kRounds; ++i) ASSERT_FALSE(mutex.try_acquire().has_value());
  const Counted cost = counted() - before;
  report(std::to_string(kRounds) + " tries", watch, cost);
  EXPECT_EQ(cost, (Counted{.range = kRounds}));
}

TEST_F(EtcdCounts, AParkedWaiterIsSilent) {
  auto client = connect();
  auto other = connect();
  auto held = other.mutex(name_).acquire({.timeout = kLong});
  Waiter waiter(client.mutex(name_));
  // The holder watches its key. The waiter watches the holder's key and its own.
  ASSERT_TRUE(eventually("all watches", [] { return server().watchers(0) == 3; }));
  Counted before;
  ASSERT_TRUE(silence(1s, before));  // a look that follows a new watch may still be on its way
  held.release();
  ASSERT_TRUE(eventually("granted", [&] { return waiter.granted(); }));
  const Counted cost = counted() - before;
  EXPECT_EQ(cost.txn, 1) << cost;
  // A member reports an event a moment before the change can be read. A second look then goes
  // through the cluster.
  EXPECT_LE(cost.range, 2) << cost;
  EXPECT_EQ(cost.other, 0) << cost;
  waiter.release();
}

TEST_F(EtcdCounts, ALockUnderContentionCostsOneWatchAndAtMostTwoRangesMore) {
  constexpr int kRounds = 100;
  auto one = connect();
  auto two = connect();
  const Counted before = counted();
  const Stopwatch all;
  std::atomic<int> old{0};
  {
    std::vector<std::jthread> threads;
    for (Client* client : {&one, &two}) {
      threads.emplace_back([&, mutex = client->mutex(name_)]() mutable {
        for (int i = 0; i < kRounds; ++i) {
          const Stopwatch watch;
          auto lock = mutex.acquire({.timeout = kLong});
          std::this_thread::sleep_for(3ms);
          lock.release();
          old += watch.elapsed() >= kYoung ? 1 : 0;
        }
      });
    }
  }
  const Counted cost = counted() - before;
  report(std::to_string(2 * kRounds) + " acquires and releases in turns", all, cost);
  EXPECT_EQ(cost.txn, 2 * 2 * kRounds);
  EXPECT_LE(cost.range, 2 * 2 * kRounds);
  EXPECT_GT(cost.watch, 0) << "nobody has waited";
  // Each watch costs two messages: create and cancel. A key that grows old has a watch of its own,
  // too.
  EXPECT_LE(cost.watch, 2 * (2 * kRounds + 2 * old));
  EXPECT_EQ(cost.other, 0);
}

// ---- a thousand waiters

TEST_F(EtcdCounts, AReleaseWakesOneOfAThousandWaiters) {
  constexpr std::size_t kClients = 4;
  constexpr std::size_t kWaiters = 1000;
  std::vector<Client> clients;
  for (std::size_t i = 0; i < kClients; ++i) clients.push_back(connect());
  auto first = clients[0].mutex(name_).acquire({.timeout = kLong});
  std::vector<std::unique_ptr<Waiter>> waiters;
  const auto join = [&](std::size_t i) {
    waiters.push_back(std::make_unique<Waiter>(clients[i % kClients].mutex(name_)));
    return eventually("joined", [&] {
      return server().watchers(0) >= static_cast<std::int64_t>(waiters.size() + 1);
    });
  };
  const Stopwatch joining;
  const Counted alone = counted();
  for (std::size_t i = 1; i <= kClients; ++i) ASSERT_TRUE(join(i));
  const int threads = test::threads_of_this_process();  // all threads exist now
  for (std::size_t i = kClients + 1; i <= kWaiters; ++i) {
    waiters.push_back(std::make_unique<Waiter>(clients[i % kClients].mutex(name_)));
  }
  // Each waiter watches its own key and the key of its predecessor, which belongs to another
  // client.
  constexpr auto kWatches = static_cast<std::int64_t>(2 * kWaiters + 1);
  ASSERT_TRUE(test::eventually_with(
      "all are parked", kLong, [] { return server().watchers(0) >= kWatches * 9 / 10; },
      [] { std::this_thread::sleep_for(50ms); }));
  EXPECT_TRUE(eventually("in line",
                         [&] { return clients[0].inspect(name_).entries.size() == kWaiters + 1; }));
  report("1000 joins", joining, counted() - alone);
  EXPECT_LE(test::threads_of_this_process(), threads + kPools);
  Counted before;
  ASSERT_TRUE(silence(500ms, before));

  // The grants come in queue order, which need not be the order of the calls of different clients.
  const Stopwatch watch;
  first.release();
  for (std::size_t served = 1; served <= kWaiters; ++served) {
    Waiter* holder = nullptr;
    ASSERT_TRUE(eventually("the next one holds it", [&] {
      for (const auto& w : waiters) {
        if (w->granted()) holder = w.get();
      }
      return holder != nullptr;
    }));
    holder->release();
    std::erase_if(waiters, [&](const auto& w) { return w.get() == holder; });
  }
  const Counted cost = counted() - before;
  report("1000 hand-overs", watch, cost);
  EXPECT_EQ(cost.txn, static_cast<std::int64_t>(kWaiters + 1));
  // One look for each release, sometimes a second one (see above), and the looks of the backstop of
  // each client.
  const auto backstops = static_cast<std::int64_t>(kClients) * (1 + watch.elapsed() / 30s);
  EXPECT_LE(cost.range, static_cast<std::int64_t>(kWaiters + kWaiters / 20) + backstops);
  // The next waiter and the owner of a key receive its deletion. Both then cancel their watches,
  // and the server confirms each cancellation.
  EXPECT_LE(cost.events, 4 * static_cast<std::int64_t>(kWaiters + 1));
  EXPECT_LE(cost.watch, 2 * static_cast<std::int64_t>(kWaiters + 1));
  EXPECT_EQ(cost.other, 0);
  EXPECT_LE(test::threads_of_this_process(), threads + kPools);
}

}  // namespace
}  // namespace baton::chaos
