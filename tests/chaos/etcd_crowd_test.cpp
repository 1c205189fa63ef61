// Thousands of waiters on a cluster of etcd servers, one of which is killed while they wait.
#include "chaos/grants.h"
#include "support/boot_clock.h"
#include "support/child.h"
#include "support/etcd_server.h"
#include "support/sanitized.h"

#include <baton/baton.h>

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::kLong;
using test::Stopwatch;

// gRPC's own pools (executors, resolvers, timers, its event engine) grow to about two threads a
// processor when it is busy, but not with the waiters. gRPC gives names to its threads. The threads
// of baton have the name of the program.
int threads_of_ours() {
  const auto name = [](const std::filesystem::path& task) {
    std::string text;
    std::getline(std::ifstream(task / "comm"), text);
    return text;
  };
  const std::string own = name("/proc/self");
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    count += name(task.path()) == own ? 1 : 0;
  }
  return count;
}

constexpr auto kSession = 40s;  // longer than the fault: all waiters keep their places

class EtcdCrowd : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::etcd_installed()) GTEST_SKIP() << "no etcd on this machine";
    test::EtcdOptions options;
    options.servers = 3;
    etcd_.emplace(options);
  }
  // The client connects to this server first.
  Client connect(int server) {
    ClientOptions options;
    options.session_timeout = kSession;
    options.connect_timeout = kLong;  // also limits inspect()
    options.log = [](LogLevel, std::string_view) {};
    std::string hosts;
    for (int i = 0; i < etcd_->size(); ++i) {
      hosts += (i == 0 ? "" : ",") + etcd_->host((server + i) % etcd_->size());
    }
    return Client::connect("etcd://" + hosts + "/crowd", options);
  }
  // Counts the keys by a counter of the server, because reading them all is work for the server.
  std::size_t keys(int server) const {
    return static_cast<std::size_t>(
        std::max(0.0, etcd_->metric(server, "etcd_debugging_mvcc_keys_total")));
  }
  // Waits as long as the count keeps growing, so a slow machine does not fail the test.
  template <class Count>
  static ::testing::AssertionResult all_of(const std::string& what, std::size_t all, Count count) {
    for (auto n = count(); n < all; n = count()) {
      auto more = in_time("the next ones", [&] { return count() >= std::min(n + 100, all); });
      if (!more) return more << "; " << count() << " of " << all << " are " << what;
    }
    return ::testing::AssertionSuccess();
  }

  std::optional<test::EtcdCluster> etcd_;
};

TEST_F(EtcdCrowd, FiveThousandWaitersKeepTheirOrderWhenTheirServerIsKilled) {
  constexpr std::size_t kClients = 4;
  const std::size_t kEach = static_cast<std::size_t>(test::scaled(1250));
  const std::size_t kAll = kClients * kEach;
  const std::string name = "five-thousand";
  const int theirs = etcd_->a_follower();
  Grants grants;
  std::vector<Client> clients;
  for (std::size_t i = 0; i < kClients; ++i) clients.push_back(connect(theirs));
  auto observer = connect(etcd_->leader());
  auto lock = std::make_optional(observer.mutex(name).acquire({.timeout = kLong}));
  // All threads exist after each client has used both of its streams and has called a handler.
  for (std::size_t i = 0; i < kClients; ++i) {
    Grants one;
    clients[i].mutex("first").acquire_async({}, [&](Result<Lock> r) { one.add(std::move(r)); });
    ASSERT_TRUE(in_time("the first grant", [&] { return one.size() == 1; }));
  }
  const int threads = threads_of_ours();
  ASSERT_GT(threads, static_cast<int>(kClients));
  ::malloc_trim(0);
  const long memory = resident_bytes();

  const Stopwatch joining;
  for (std::size_t i = 0; i < kEach; ++i) {
    for (auto& client : clients) {
      client.mutex(name).acquire_async({}, [&](Result<Lock> r) { grants.add(std::move(r)); });
    }
  }
  ASSERT_TRUE(all_of("in line", kAll + 1, [&] { return keys(theirs); }));
  // Each waiter watches its own key. A key between two waiters of one client is watched once.
  ASSERT_TRUE(in_time("all are parked",
                      [&] { return etcd_->watchers(theirs) >= static_cast<std::int64_t>(kAll); }));
  const auto joined = joining.elapsed();
  EXPECT_LE(threads_of_ours(), threads);
  const long each = (resident_bytes() - memory) / static_cast<long>(kAll);
  if (!test::sanitized()) {
    EXPECT_LE(each, 8192) << "bytes per waiter";
  }
  auto line = line_of(observer, name);
  ASSERT_EQ(line.size(), kAll + 1);
  line.erase(line.begin());  // the first holder is the observer
  for (auto& client : clients) EXPECT_EQ(client.session().endpoint, etcd_->host(theirs));

  const Stopwatch serving;
  lock.reset();
  ASSERT_TRUE(all_of("served", kAll / 5, [&] { return grants.size(); }));
  etcd_->kill(theirs);
  const std::size_t before = grants.size();
  EXPECT_LT(before, kAll) << "too late for a fault";
  const Stopwatch outage;
  ASSERT_TRUE(in_time("it goes on", [&] { return grants.size() > before + 1; }));
  const auto down = outage.elapsed();
  EXPECT_LE(threads_of_ours(), threads);
  ASSERT_TRUE(all_of("served", kAll, [&] { return grants.size(); }));
  const auto served = serving.elapsed();

  grants.expect_in_order(line);
  EXPECT_LE(threads_of_ours(), threads);
  EXPECT_TRUE(in_time("no key is left", [&] { return etcd_->keys().empty(); }));
  for (auto& client : clients) client.close();
  observer.close();
  EXPECT_EQ(etcd_->leases(), std::set<std::int64_t>{});
  std::printf(
      "[          ] %zu waiters: joined in %.1f s, %ld bytes each, %d threads; %zu served before "
      "the kill, the next one %.1f s after it; all in %.1f s\n",
      kAll, static_cast<double>(joined.count()) / 1000, each, threads, before,
      static_cast<double>(down.count()) / 1000, static_cast<double>(served.count()) / 1000);
}

}  // namespace
}  // namespace baton::chaos
