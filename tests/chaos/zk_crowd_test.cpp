// Thousands of waiters on a ZooKeeper server that is killed and started again while they wait.
#include "chaos/grants.h"
#include "support/boot_clock.h"
#include "support/child.h"
#include "support/proxy.h"
#include "support/sanitized.h"
#include "support/zk_server.h"

#include <baton/baton.h>

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::kLong;
using test::Stopwatch;

constexpr auto kSession = 40s;  // longer than the restart: all waiters keep their entries

long long count_of(std::chrono::milliseconds time) { return time.count(); }

class ZkCrowd : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!test::zk_installed()) throw std::runtime_error("no ZooKeeper server here");
  }

  Client connect() {
    ClientOptions options;
    options.session_timeout = kSession;
    options.connect_timeout = kLong;  // also limits inspect()
    return Client::connect("zk://" + proxy_.host() + "/crowd", options);
  }

  // The number of ephemeral nodes of all sessions at the server. nullopt: the server did not
  // answer.
  std::optional<std::size_t> entries_at_server() {
    const std::string dump = server_.four_letter(0, "dump");
    if (dump.empty()) return std::nullopt;
    std::size_t n = 0;
    for (const auto& [session, paths] : test::parse_dump(dump).ephemerals) n += paths.size();
    return n;
  }
  // The sessions that have a connection.
  std::set<std::int64_t> sessions_at_server() {
    std::set<std::int64_t> all;
    for (const auto& c : server_.connections(0)) {
      if (c.session != 0) all.insert(c.session);
    }
    return all;
  }

  // The bytes of watched paths that each session sends to a server after a reconnect.
  std::map<std::int64_t, std::size_t> watched_bytes() {
    std::map<std::int64_t, std::size_t> bytes;
    for (const auto& [path, sessions] : server_.watches(0)) {
      for (const auto session : sessions) bytes[session] += path.size() + 4;
    }
    return bytes;
  }

  // Waits until the server has the entries and watches of all clients.
  ::testing::AssertionResult parked(std::size_t entries, std::size_t watches) {
    return in_time(std::to_string(entries) + " in line", [&] {
      return entries_at_server() == entries &&
             server_.watch_count(0) >= static_cast<std::int64_t>(watches);
    });
  }

  // Waits as long as grants come, so a slow machine does not fail the test.
  static ::testing::AssertionResult served(const Grants& grants, std::size_t all) {
    for (auto n = grants.size(); n < all; n = grants.size()) {
      const auto more =
          in_time("the next ones", [&] { return grants.size() >= std::min(n + 100, all); });
      if (!more) return more;
    }
    return ::testing::AssertionSuccess();
  }

  test::ZkEnsemble server_;
  test::Proxy proxy_{server_.client_port(0)};
};

TEST_F(ZkCrowd, FiveThousandWaitersKeepTheirOrderWhenTheServerIsKilled) {
  constexpr std::size_t kClients = 4;
  const std::size_t kEach = static_cast<std::size_t>(test::scaled(1250));
  const std::size_t kAll = kClients * kEach;
  const std::string name = "five-thousand";
  Grants grants;
  std::vector<Client> clients;
  for (std::size_t i = 0; i < kClients; ++i) clients.push_back(connect());
  auto observer = connect();
  auto lock = std::make_optional(observer.mutex(name).acquire({.timeout = kLong}));
  for (auto& client : clients) (void)client.inspect(name);  // all threads exist after this
  const int threads = test::threads_of_this_process();
  ::malloc_trim(0);
  const long memory = resident_bytes();

  const Stopwatch joining;
  for (std::size_t i = 0; i < kEach; ++i) {
    for (auto& client : clients) {
      client.mutex(name).acquire_async({}, [&](Result<Lock> r) { grants.add(std::move(r)); });
    }
  }
  // Each waiter watches its own node. A node between two waiters of one client is watched once.
  ASSERT_TRUE(parked(kAll + 1, kAll));
  const auto joined = joining.elapsed();
  EXPECT_LE(test::threads_of_this_process(), threads);
  const long each = (resident_bytes() - memory) / static_cast<long>(kAll);
  if (!test::sanitized()) {
    EXPECT_LE(each, 8192) << "bytes per waiter";
  }
  auto line = line_of(observer, name);
  ASSERT_EQ(line.size(), kAll + 1);
  line.erase(line.begin());  // the first holder is the observer

  const Stopwatch serving;
  lock.reset();
  grants.keep(kAll * 4 / 5);  // the fault comes in time even if this thread is slow
  ASSERT_TRUE(served(grants, kAll / 5));
  const Stopwatch outage;
  server_.kill(0);
  server_.start(0, proxy_);
  const std::size_t before = grants.size();
  grants.let_go();
  ASSERT_TRUE(in_time("it goes on", [&] { return grants.size() > before + 1; }));
  const auto down = outage.elapsed();
  EXPECT_LE(test::threads_of_this_process(), threads);
  ASSERT_TRUE(served(grants, kAll));
  const auto served = serving.elapsed();

  grants.expect_in_order(line);
  EXPECT_LE(test::threads_of_this_process(), threads);
  EXPECT_TRUE(in_time("no entry is left", [&] { return entries_at_server() == 0; }));
  EXPECT_TRUE(observer.inspect(name).entries.empty());
  std::printf(
      "%zu waiters: joined in %lld ms, %ld bytes each, %d threads; %zu served before the "
      "kill, the next one %lld ms after it; all in %lld ms\n",
      kAll, count_of(joined), each, threads, before, count_of(down), count_of(served));
}

// After a reconnect the C client sends all watches of its session in one packet, and servers refuse
// packets above 1 MiB. A client with more watches in one session could never connect again.
TEST_F(ZkCrowd, WatchesThatDoNotFitInOnePacketSurviveAKilledServer) {
  constexpr std::size_t kLocks = 25;
  constexpr std::size_t kEach = 105;
  constexpr std::size_t kAll = kLocks * kEach;
  constexpr std::size_t kOnePacket = 1024 * 1024;
  constexpr std::size_t kBudget = 512 * 1024;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kLocks; ++i) {
    const std::string part(99, static_cast<char>('a' + i));
    names.push_back(part + "/" + part + "/" + part + "/" + part);
  }
  std::vector<Grants> grants(kLocks);
  auto observer = connect();
  auto client = connect();
  std::vector<Lock> held;
  for (const auto& name : names) held.push_back(observer.mutex(name).acquire({.timeout = kLong}));
  for (std::size_t i = 0; i < kAll; ++i) {
    auto& to = grants[i % kLocks];
    client.mutex(names[i % kLocks]).acquire_async({}, [&to](Result<Lock> r) {
      to.add(std::move(r));
    });
  }
  // The client watches each waiter's node and each holder's node. The observer watches each
  // holder's node.
  const std::size_t kWatches = kAll + 2 * kLocks;
  ASSERT_TRUE(parked(kAll + kLocks, kWatches));

  std::map<std::int64_t, std::size_t> bytes;
  std::set<std::int64_t> sessions;
  ASSERT_TRUE(in_time("the server says who watches what", [&] {
    bytes = watched_bytes();
    sessions = sessions_at_server();
    return !bytes.empty() && !sessions.empty();
  }));
  std::size_t all = 0;
  for (const auto& [session, n] : bytes) {
    EXPECT_LE(n, kBudget) << test::session_text(session);
    all += n;
  }
  ASSERT_GT(all, kOnePacket) << "too few for this test";
  EXPECT_EQ(sessions.size(), 1 + 3U) << "the observer's, and as many as it takes";
  std::vector<std::vector<std::uint64_t>> lines;
  for (const auto& name : names) {
    lines.push_back(line_of(observer, name));
    lines.back().erase(lines.back().begin());
  }

  server_.kill(0);
  server_.start(0, proxy_);
  EXPECT_TRUE(in_time("all sessions are back with all watches", [&] {
    return sessions_at_server() == sessions && watched_bytes() == bytes;
  }));
  const Stopwatch serving;
  held.clear();
  for (std::size_t i = 0; i < kLocks; ++i) {
    ASSERT_TRUE(served(grants[i], kEach)) << names[i];
    grants[i].expect_in_order(lines[i]);
  }
  EXPECT_TRUE(in_time("no entry is left", [&] { return entries_at_server() == 0; }));
  std::printf(
      "%zu waiters on %zu locks, %zu bytes of watched paths in %zu sessions; served in "
      "%lld ms after the restart\n",
      kAll, kLocks, all, sessions.size(), count_of(serving.elapsed()));
}

}  // namespace
}  // namespace baton::chaos
