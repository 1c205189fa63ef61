// testing::MemoryStore, method by method, as in the test of a user.
#include <baton/baton.h>
#include <baton/testing.h>

#include "support/eventually.h"
#include "support/log_capture.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace baton {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using testing::MemoryStore;

template <class F>
std::optional<Errc> error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.errc();
  }
  return std::nullopt;
}

class TestingStore : public ::testing::Test {
 protected:
  ClientOptions options() const {
    ClientOptions o;
    o.log = log_.sink();
    o.session_timeout = 10s;
    return o;
  }
  Client open() const { return Client::connect("memory:ts", options()); }
  test::LogCapture log_;
};

TEST_F(TestingStore, TheExampleOfTheHeader) {
  MemoryStore store("orders-test");
  auto client = Client::connect("memory:orders-test", options());
  auto lock = client.mutex("orders/7").acquire();
  EXPECT_TRUE(lock.valid());
  store.expire_sessions();
  EXPECT_FALSE(lock.valid());
  EXPECT_EQ(lock.lost_reason(), Errc::session_expired);
}

TEST_F(TestingStore, NameIsExclusive) {
  {
    MemoryStore store("ts");
    EXPECT_EQ(error_of([] { MemoryStore second("ts"); }), Errc::invalid_argument);
    MemoryStore other("ts2");
  }
  MemoryStore again("ts");
}

TEST_F(TestingStore, NameInPlainUseIsRefused) {
  auto client = Client::connect("memory:ts-plain", options());
  EXPECT_EQ(error_of([] { MemoryStore store("ts-plain"); }), Errc::invalid_argument);
}

TEST_F(TestingStore, PlainStoreComesBackAfterwards) {
  {
    MemoryStore store("ts");
    auto client = open();
    EXPECT_LT(client.session().timeout, std::chrono::milliseconds::max());
  }
  auto client = open();
  EXPECT_EQ(client.session().timeout, std::chrono::milliseconds::max());
  EXPECT_TRUE(client.mutex("a").acquire_for(10s).valid());
}

TEST_F(TestingStore, TimeMovesByAdvanceAlone) {
  MemoryStore store("ts");
  auto client = open();
  const auto start = store.now();
  auto lock = client.mutex("a").acquire();
  const auto left = lock.valid_for();
  EXPECT_GT(left, 0ms);
  EXPECT_LE(left, 10s);
  EXPECT_EQ(lock.valid_for(), left) << "time stands still";
  store.advance(100ms);
  EXPECT_EQ(store.now() - start, 100ms);
  store.advance(0ms);
  EXPECT_EQ(store.now() - start, 100ms);
}

TEST_F(TestingStore, HeartbeatsKeepTheSessionForHours) {
  MemoryStore store("ts");
  auto client = open();
  auto lock = client.mutex("a").acquire();
  store.advance(3h);
  EXPECT_TRUE(lock.valid());
  EXPECT_EQ(lock.state(), LockState::held);
  EXPECT_EQ(store.sessions(), 1u);
  EXPECT_EQ(store.entries("a"), 1u);
}

TEST_F(TestingStore, TimeoutsFollowVirtualTime) {
  MemoryStore store("ts");
  auto client = open();
  auto lock = client.mutex("a").acquire();
  std::atomic<int> code{0};
  client.mutex("a").acquire_async(
      {.timeout = 1h}, [&](Result<Lock> r) { code = r ? -1 : static_cast<int>(r.error().errc()); });
  ASSERT_TRUE(eventually("the waiter", [&] { return store.entries("a") == 2; }));
  store.advance(59min);
  EXPECT_EQ(code, 0);
  store.advance(2min);
  EXPECT_TRUE(eventually("the timeout", [&] { return code != 0; }));
  EXPECT_EQ(code, static_cast<int>(Errc::timeout));
  EXPECT_EQ(store.entries("a"), 1u);
}

TEST_F(TestingStore, BlockingTimeoutsFollowVirtualTime) {
  MemoryStore store("ts");
  auto client = open();
  auto lock = client.mutex("a").acquire();
  auto waiting = std::async(std::launch::async, [&] {
    return error_of([&] { (void)client.mutex("a").acquire_for(10s); });
  });
  ASSERT_TRUE(eventually("the waiter", [&] { return store.entries("a") == 2; }));
  store.advance(11s);
  ASSERT_EQ(waiting.wait_for(30s), std::future_status::ready);
  EXPECT_EQ(waiting.get(), Errc::timeout);
}

TEST_F(TestingStore, ExpireSessionsReturnsWhenEveryClientKnows) {
  MemoryStore store("ts");
  auto one = open();
  auto two = open();
  for (int i = 0; i < 20; ++i) {
    auto a = one.mutex("a").acquire({.timeout = 1h});
    auto b = two.mutex("b").acquire({.timeout = 1h});
    store.expire_sessions();
    EXPECT_FALSE(a.valid());
    EXPECT_FALSE(b.valid());
    EXPECT_EQ(a.state(), LockState::lost);
    store.advance(10s);  // gives time to open new sessions
  }
}

TEST_F(TestingStore, DisconnectMakesSuspectThenLost) {
  MemoryStore store("ts");
  auto client = open();
  auto lock = client.mutex("a").acquire();
  store.disconnect();
  bool suspect = false;
  for (int i = 0; i < 1000 && lock.valid(); ++i) {
    store.advance(20ms);
    suspect = suspect || lock.state() == LockState::suspect;
    if (lock.valid()) {
      EXPECT_EQ(store.entries("a"), 1u);
    }
  }
  EXPECT_TRUE(suspect);
  EXPECT_EQ(lock.state(), LockState::lost);
  EXPECT_TRUE(eventually("lost_token()", [&] { return lock.lost_token().stop_requested(); }));
  store.advance(20s);
  EXPECT_EQ(store.entries("a"), 0u);
  EXPECT_EQ(store.sessions(), 0u);
  store.reconnect();
  store.advance(10s);
  EXPECT_TRUE(client.mutex("a").acquire({.timeout = 1h}).valid());
}

// The deadline is exact: the lock is valid 1 ms before it, and lost 1 ms after it.
TEST_F(TestingStore, ValidEndsExactlyAtTheDeadline) {
  MemoryStore store("ts");
  auto client = open();
  auto lock = client.mutex("a").acquire();
  store.disconnect();
  const auto left = lock.valid_for();
  store.advance(left - 1ms);
  EXPECT_TRUE(lock.valid());
  store.advance(2ms);
  EXPECT_FALSE(lock.valid());
  EXPECT_EQ(lock.valid_for(), 0ms);
}

TEST_F(TestingStore, ReconnectInTimeSavesTheHold) {
  MemoryStore store("ts");
  auto client = open();
  auto lock = client.mutex("a").acquire();
  for (int i = 0; i < 5; ++i) {
    store.disconnect();
    store.advance(5s);
    store.reconnect();
    store.advance(5s);
    ASSERT_TRUE(lock.valid()) << i;
    EXPECT_EQ(lock.state(), LockState::held);
  }
}

TEST_F(TestingStore, DroppedAnswersAddUp) {
  MemoryStore store("ts");
  auto client = open();
  store.drop_next_answer();
  store.drop_next_answer();
  std::atomic<bool> done{false};
  client.mutex("a").acquire_async({}, [&](Result<Lock> r) { done = r.has_value(); });
  EXPECT_TRUE(eventually("the request at the store", [&] { return store.entries("a") == 1; }));
  EXPECT_FALSE(done) << "its answer was dropped";
  EXPECT_TRUE(eventually("the acquire to get through", [&] {
    store.advance(100ms);
    return done.load();
  }));
  EXPECT_TRUE(eventually("the release", [&] {
    store.advance(100ms);
    return store.entries("a") == 0;
  }));
}

TEST_F(TestingStore, DelayedAnswersComeLate) {
  MemoryStore store("ts");
  auto client = open();
  store.delay_next_answer(500ms);
  std::atomic<bool> done{false};
  std::mutex mutex;
  std::optional<Lock> lock;
  client.mutex("a").acquire_async({}, [&](Result<Lock> r) {
    const std::lock_guard guard(mutex);
    if (r) lock = std::move(r).value();
    done = true;
  });
  EXPECT_TRUE(eventually("the request at the store", [&] { return store.entries("a") == 1; }));
  store.advance(400ms);
  EXPECT_FALSE(done);
  store.advance(200ms);
  EXPECT_TRUE(eventually("the answer", [&] { return done.load(); }));
  const std::lock_guard guard(mutex);
  ASSERT_TRUE(lock);
  EXPECT_TRUE(lock->valid());
}

TEST_F(TestingStore, RemoveHolderAndEntry) {
  MemoryStore store("ts");
  auto client = open();
  auto lock = client.mutex("a").acquire();
  EXPECT_FALSE(store.remove_entry("a", "nonsense"));
  EXPECT_FALSE(store.remove_holder("b"));
  EXPECT_FALSE(store.remove_entry("b", "x"));
  EXPECT_TRUE(store.remove_holder("a"));
  EXPECT_FALSE(lock.valid());
  EXPECT_EQ(lock.lost_reason(), Errc::evicted);
  EXPECT_FALSE(store.remove_holder("a"));
  auto next = client.mutex("a").acquire({.timeout = 1h});
  const auto id = client.inspect("a").entries.front().id;
  EXPECT_TRUE(store.remove_entry("a", id));
  EXPECT_FALSE(next.valid());
  EXPECT_FALSE(store.remove_entry("a", id));
}

TEST_F(TestingStore, CountsEntriesAndSessions) {
  MemoryStore store("ts");
  EXPECT_EQ(store.sessions(), 0u);
  EXPECT_EQ(store.entries("a"), 0u);
  {
    auto one = open();
    auto two = open();
    EXPECT_EQ(store.sessions(), 2u);
    auto lock = one.mutex("a").acquire();
    EXPECT_EQ(store.entries("a"), 1u);
    EXPECT_EQ(store.entries("a/b"), 0u);
  }
  EXPECT_EQ(store.sessions(), 0u);
  EXPECT_EQ(store.entries("a"), 0u);
}

TEST_F(TestingStore, AdvanceFromManyThreads) {
  MemoryStore store("ts");
  auto client = open();
  auto lock = client.mutex("a").acquire();
  const auto start = store.now();
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < 4; ++i) {
      all.emplace_back([&] {
        for (int k = 0; k < 50; ++k) store.advance(10ms);
      });
    }
  }
  EXPECT_EQ(store.now() - start, 2s);
  EXPECT_TRUE(lock.valid());
}

}  // namespace
}  // namespace baton
