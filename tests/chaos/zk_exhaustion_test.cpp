// A server numbers the entries of a lock with a counter that ends at 2147483647. At its end no
// client is granted the lock, and every acquire fails with an error that says why and what to do.
#include "chaos/zk_forge.h"
#include "chaos/zk_raw.h"
#include "history/holds.h"
#include "support/boot_clock.h"
#include "support/eventually.h"
#include "support/zk_server.h"

#include <baton/baton.h>

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::kLong;

constexpr std::int32_t kLast = std::numeric_limits<std::int32_t>::max();
constexpr const char* kLock = "tired-lock";
constexpr const char* kDirectory = "/years/tired-lock";

test::ZkOptions sweeping_server() {
  test::ZkOptions options;
  // Containers are removed soon after their last entry. The default is a minute or two.
  options.jvm = {"-Dznode.container.checkIntervalMs=500"};
  return options;
}

class ZkExhaustion : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!test::zk_installed()) throw std::runtime_error("no ZooKeeper server here");
  }

  Client connect() {
    ClientOptions options;
    options.session_timeout = 40s;  // longer than a restart on a busy machine
    options.zookeeper.persistent_parents = permanent_;
    return Client::connect("zk://" + proxy_.host() + "/years", options);
  }

  // The next entry of the lock's directory will get this number. Clients reconnect.
  void set_next_number(std::int32_t next) {
    server_.kill(0);
    forge_next_number(server_, 0, kDirectory, next);
    server_.start(0, proxy_);
  }

  static std::string number_of(const std::string& id) { return id.substr(id.rfind('-') + 1); }
  static std::vector<std::string> numbers(Client& client) {
    std::vector<std::string> all;
    for (const auto& entry : client.inspect(kLock).entries) all.push_back(number_of(entry.id));
    return all;
  }
  static ::testing::AssertionResult empty(Client& client) {
    return eventually("no entry", [&] { return client.inspect(kLock).entries.empty(); });
  }

  // An acquire fails at once with an error that says what is wrong and what to do.
  static void expect_refused(Client& client) {
    const auto refused = client.mutex(kLock).acquire_result({.timeout = 10s});
    ASSERT_FALSE(refused);
    const std::string text = refused.error().what();
    EXPECT_EQ(refused.error().errc(), Errc::store_error) << text;
    EXPECT_NE(text.find(kLock), text.npos) << text;
    EXPECT_NE(text.find(std::string("the directory ") + kDirectory), text.npos) << text;
    EXPECT_NE(text.find("last sequence number"), text.npos) << text;
    EXPECT_NE(text.find("Remove the directory"), text.npos) << text;
  }

  bool permanent_ = true;
  test::ZkEnsemble server_{sweeping_server()};
  test::Proxy proxy_{server_.client_port(0)};
};

TEST_F(ZkExhaustion, TheLastNumbersServeAndTheVeryLastServesNobody) {
  auto a = connect();
  auto b = connect();
  a.mutex(kLock).acquire({.timeout = kLong}).release();
  set_next_number(kLast - 2);

  auto first = a.mutex(kLock).acquire({.timeout = kLong});
  EXPECT_EQ(numbers(b), std::vector<std::string>{"2147483645"});
  std::mutex mutex;
  std::optional<Lock> second;
  b.mutex(kLock).acquire_async({}, [&](Result<Lock> r) {
    const std::lock_guard guard(mutex);
    second = std::move(r).value();
  });
  ASSERT_TRUE(eventually("two in line", [&] { return numbers(a).size() == 2; }));
  EXPECT_EQ(numbers(a).back(), "2147483646");
  // New acquires are refused, even before the lock is free, and do not disturb the holder or the
  // waiter.
  expect_refused(a);
  first.verify();
  const auto token = first.token();
  first.release();
  ASSERT_TRUE(eventually("hand-over", [&] {
    const std::lock_guard guard(mutex);
    return second.has_value();
  }));
  EXPECT_GT(second->token(), token);
  EXPECT_EQ(numbers(a), std::vector<std::string>{"2147483646"});
  expect_refused(a);
  expect_refused(b);
  second->verify();
  second->release();
  // The lock is free, and is still not granted.
  EXPECT_TRUE(empty(a));
  expect_refused(a);
  expect_refused(b);
  EXPECT_TRUE(empty(a)) << "what was refused goes a moment later, and is in the way until then";
  EXPECT_THROW((void)a.mutex(kLock).try_acquire(), Error);
  EXPECT_TRUE(empty(b));
}

TEST_F(ZkExhaustion, NoTwoHoldAcrossTheEndOfTheNumbers) {
  constexpr int kLeft = 40;
  constexpr int kThreads = 4;
  auto a = connect();
  auto b = connect();
  a.mutex(kLock).acquire({.timeout = kLong}).release();
  set_next_number(kLast - kLeft);

  history::Log holds;
  std::atomic<int> strange{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, mutex = (i % 2 == 0 ? a : b).mutex(kLock)]() mutable {
      for (int refused = 0; refused < 20;) {
        auto lock = mutex.acquire_result({.timeout = kLong});
        if (!lock) {
          strange += lock.error().errc() != Errc::store_error ? 1 : 0;
          ++refused;
          continue;
        }
        const auto begin = test::boot_now();
        holds.add({begin, test::boot_now(), lock->token()});
      }
    });
  }
  threads.clear();  // joins the threads
  EXPECT_TRUE(exclusive_and_ordered(holds.all()));
  EXPECT_EQ(strange, 0) << "refused for other reasons";
  EXPECT_EQ(holds.size(), static_cast<std::size_t>(kLeft))
      << "each number serves once, but for the last";
  EXPECT_TRUE(empty(a));
}

TEST_F(ZkExhaustion, ARemovedDirectoryBeginsAnew) {
  auto a = connect();
  std::uint64_t token = 0;
  {
    auto lock = a.mutex(kLock).acquire({.timeout = kLong});
    token = lock.token();
    lock.release();
  }
  set_next_number(kLast);
  expect_refused(a);
  EXPECT_TRUE(empty(a));
  ASSERT_EQ(RawZk(server_.hosts()).remove(kDirectory), ZOK);
  auto lock = a.mutex(kLock).acquire({.timeout = kLong});
  EXPECT_GT(lock.token(), token) << "tokens do not begin anew";
  EXPECT_EQ(numbers(a), std::vector<std::string>{"0000000000"});
}

TEST_F(ZkExhaustion, AContainerVanishesByItselfAndBeginsAnew) {
  permanent_ = false;
  auto a = connect();
  auto b = connect();
  auto old = a.mutex(kLock).acquire({.timeout = kLong});
  set_next_number(kLast);
  expect_refused(b);
  old.verify();  // an earlier holder is not disturbed
  old.release();
  RawZk onlooker(server_.hosts());
  ASSERT_TRUE(
      eventually("the directory has gone", [&] { return onlooker.exists(kDirectory) == ZNONODE; }));
  EXPECT_GT(b.mutex(kLock).acquire({.timeout = kLong}).token(), old.token());
  EXPECT_TRUE(empty(a));
}

}  // namespace
}  // namespace baton::chaos
