// DistributedMutex is Lockable and TimedLockable, so it works with the guards of the standard
// library.
#include "conformance/fixture.h"

#include <atomic>
#include <mutex>
#include <thread>

namespace baton::conformance {
namespace {

TEST_P(StdLocks, LockGuard) {
  auto client = open();
  auto mutex = client.mutex("a");
  {
    const std::lock_guard guard(mutex);
    EXPECT_TRUE(mutex.valid());
    EXPECT_NE(mutex.token(), 0u);
  }
  EXPECT_FALSE(mutex.valid());
  EXPECT_TRUE(in_line("a", 0));
}

TEST_P(StdLocks, UniqueLockWithAllItsWays) {
  auto client = open();
  auto other = open();
  auto mutex = client.mutex("a");
  std::unique_lock<DistributedMutex> guard(mutex, std::defer_lock);
  EXPECT_FALSE(guard.owns_lock());
  EXPECT_TRUE(guard.try_lock());
  guard.unlock();
  EXPECT_TRUE(guard.try_lock_for(kLong));
  guard.unlock();
  EXPECT_TRUE(guard.try_lock_until(std::chrono::steady_clock::now() + kLong));
  guard.unlock();
  ASSERT_TRUE(in_line("a", 0));
  auto lock = other.mutex("a").acquire(patient());
  EXPECT_FALSE(guard.try_lock());
  EXPECT_FALSE(guard.try_lock_for(20ms));
  const std::unique_lock<DistributedMutex> tried(mutex, std::try_to_lock);
  EXPECT_FALSE(tried.owns_lock());
  lock.release();
  guard.lock();
  EXPECT_TRUE(guard.owns_lock());
}

TEST_P(StdLocks, ScopedLockOfTwoInOppositeOrdersDoesNotDeadlock) {
  auto client = open();
  auto other = open();
  const int rounds = rig().rounds(scaled(60));
  std::atomic<long> both{0};  // two steps: with a second holder an update is lost
  const auto run = [&](Client& c, const char* first, const char* second) {
    auto a = c.mutex(first);
    auto b = c.mutex(second);
    for (int i = 0; i < rounds; ++i) {
      const std::scoped_lock guard(a, b);
      const long before = both.load(std::memory_order_relaxed);
      std::this_thread::yield();
      both.store(before + 1, std::memory_order_relaxed);
    }
  };
  {
    std::jthread one([&] { run(client, "a", "b"); });
    std::jthread two([&] { run(other, "b", "a"); });
  }
  EXPECT_EQ(both, 2L * rounds);
}

TEST_P(StdLocks, StdLockTakesTwoMutexes) {
  auto client = open();
  auto a = client.mutex("a");
  auto b = client.mutex("b");
  std::lock(a, b);
  EXPECT_TRUE(a.valid());
  EXPECT_TRUE(b.valid());
  const std::lock_guard first(a, std::adopt_lock);
  const std::lock_guard second(b, std::adopt_lock);
  EXPECT_EQ(entries("a") + entries("b"), 2u);
}

TEST_P(StdLocks, StdTryLockBacksOut) {
  auto client = open();
  auto other = open();
  auto a = client.mutex("a");
  auto b = client.mutex("b");
  auto taken = other.mutex("b").acquire(patient());
  EXPECT_EQ(std::try_lock(a, b), 1);
  EXPECT_FALSE(a.valid());
  EXPECT_TRUE(in_line("a", 0));
}

TEST_P(StdLocks, GuardDestroyedByAnExceptionUnlocks) {
  auto client = open();
  auto mutex = client.mutex("a");
  try {
    const std::scoped_lock guard(mutex);
    throw std::runtime_error("work failed");
  } catch (const std::runtime_error&) {
  }
  EXPECT_TRUE(in_line("a", 0));
}

// A guard also calls unlock() on a lost hold. This must not throw and must not affect the next
// holder.
TEST_P(StdLocks, GuardOfALostHoldUnlocksQuietly) {
  auto client = open();
  auto other = open();
  auto mutex = client.mutex("a");
  Lock next;
  {
    const std::lock_guard guard(mutex);
    ASSERT_TRUE(evict("a", mutex.token(), other));
    next = other.mutex("a").acquire(patient());
  }
  next.verify();
  EXPECT_TRUE(next.valid());
}

}  // namespace
}  // namespace baton::conformance
