// The two styles share one queue. A hold by lock() belongs to the calling thread. A hold by
// acquire() belongs to the Lock, which can move to another thread.
#include "conformance/fixture.h"

#include <thread>

namespace baton::conformance {
namespace {

TEST_P(Ownership, HandleWithoutTimeoutWhileTheThreadHoldsWouldDeadlock) {
  auto client = open();
  auto mutex = client.mutex("a");
  mutex.lock();
  EXPECT_EQ(error_of([&] { (void)mutex.acquire(); }), Errc::would_deadlock);
  EXPECT_EQ(error_of([&] { (void)client.mutex("a").acquire(); }), Errc::would_deadlock);
  EXPECT_EQ(error_of([&] { (void)mutex.acquire_for(std::chrono::milliseconds::max()); }),
            Errc::would_deadlock)
      << "no limit, said in another way";
  std::stop_source never;
  EXPECT_EQ(error_of([&] { (void)mutex.acquire({{}, never.get_token()}); }), Errc::would_deadlock);
  const auto result = mutex.acquire_result();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().errc(), Errc::would_deadlock);
  EXPECT_EQ(entries("a"), 1u);
  mutex.unlock();
  EXPECT_TRUE(mutex.acquire(patient()).valid());
}

TEST_P(Ownership, HandleWithTimeoutWhileTheThreadHoldsTimesOut) {
  auto client = open();
  auto mutex = client.mutex("a");
  mutex.lock();
  EXPECT_EQ(error_of([&] { (void)mutex.acquire(within(50ms)); }), Errc::timeout);
  EXPECT_EQ(error_of([&] { (void)mutex.acquire_for(0ms); }), Errc::timeout);
  EXPECT_FALSE(mutex.try_acquire().has_value());
  EXPECT_FALSE(mutex.try_acquire_for(50ms).has_value());
  EXPECT_TRUE(in_line("a", 1));
  EXPECT_TRUE(mutex.valid());
  mutex.unlock();
}

TEST_P(Ownership, AnotherThreadMayWaitForAHandleMeanwhile) {
  auto client = open();
  auto mutex = client.mutex("a");
  mutex.lock();
  auto waiting = later(mutex);
  ASSERT_TRUE(in_line("a", 2));
  mutex.unlock();
  ASSERT_TRUE(ready(waiting));
  EXPECT_TRUE(waiting.get().valid());
}

TEST_P(Ownership, AHandleIsNoHoldOfTheThread) {
  auto client = open();
  auto mutex = client.mutex("a");
  auto lock = mutex.acquire(patient());
  EXPECT_FALSE(mutex.valid());
  EXPECT_EQ(error_of([&] { (void)mutex.token(); }), Errc::not_held);
  EXPECT_FALSE(mutex.try_lock());
  EXPECT_FALSE(mutex.try_lock_for(30ms));
  mutex.unlock();  // only logs an error
  lock.verify();
  EXPECT_EQ(entries("a"), 1u);
}

TEST_P(Ownership, LockMovesToAnotherThread) {
  auto client = open();
  auto mutex = client.mutex("a");
  auto lock = mutex.acquire(patient());
  const auto token = lock.token();
  std::thread([moved = std::move(lock), token, &mutex]() mutable {
    EXPECT_TRUE(moved.valid());
    EXPECT_EQ(moved.token(), token);
    EXPECT_FALSE(mutex.try_acquire().has_value());
    moved.release();
  }).join();
  EXPECT_TRUE(in_line("a", 0));
}

TEST_P(Ownership, MovedFromLockIsReleasedWithTokenZero) {
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  const auto token = lock.token();
  Lock taken = std::move(lock);
  EXPECT_EQ(lock.token(),
            0u);  // NOLINT(bugprone-use-after-move): the moved-from state is documented
  EXPECT_EQ(lock.state(), LockState::released);
  EXPECT_FALSE(lock.valid());
  EXPECT_FALSE(static_cast<bool>(lock));
  EXPECT_EQ(lock.valid_for(), 0ms);
  EXPECT_FALSE(lock.lost_reason());
  EXPECT_FALSE(lock.lost_token().stop_requested());
  EXPECT_EQ(lock.name(), lock.name());
  EXPECT_EQ(error_of([&] { lock.release(); }), Errc::not_held);
  EXPECT_EQ(error_of([&] { lock.verify(); }), Errc::not_held);
  EXPECT_EQ(taken.token(), token);
  EXPECT_TRUE(taken.valid());
  EXPECT_EQ(taken.state(), LockState::held);
  EXPECT_EQ(taken.name(), "a");
}

TEST_P(Ownership, MoveAssignmentReleasesWhatItHeld) {
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  lock = client.mutex("b").acquire(patient());
  EXPECT_TRUE(in_line("a", 0));
  EXPECT_EQ(entries("b"), 1u);
  EXPECT_EQ(lock.name(), "b");
  lock = Lock();
  EXPECT_TRUE(in_line("b", 0));
  EXPECT_EQ(lock.token(), 0u);
  Lock& self = lock;
  lock = std::move(self);
}

TEST_P(Ownership, EveryAcquireIsItsOwnPlace) {
  auto client = open();
  auto mutex = client.mutex("a");
  auto first = mutex.acquire(patient());
  auto second = later(mutex);
  ASSERT_TRUE(in_line("a", 2));
  auto third = later(mutex);
  ASSERT_TRUE(in_line("a", 3));
  first.release();
  ASSERT_TRUE(ready(second));
  auto held = second.get();
  EXPECT_EQ(third.wait_for(20ms), std::future_status::timeout);
  held.release();
  ASSERT_TRUE(ready(third));
  EXPECT_GT(third.get().token(), held.token());
}

TEST_P(Ownership, DestroyingTheHandleReleases) {
  auto client = open();
  { auto lock = client.mutex("a").acquire(patient()); }
  EXPECT_TRUE(in_line("a", 0));
  { auto lock = client.mutex("a").acquire_result(patient()); }
  EXPECT_TRUE(in_line("a", 0));
  (void)client.mutex("a").acquire(patient());
  EXPECT_TRUE(in_line("a", 0));
}

}  // namespace
}  // namespace baton::conformance
