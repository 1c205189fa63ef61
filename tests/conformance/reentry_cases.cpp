// lock() is reentrant for each thread: the same thread may lock again, and no other thread may
// unlock.
#include "conformance/fixture.h"

#include <mutex>
#include <thread>

namespace baton::conformance {
namespace {

TEST_P(Reentry, CountsAndKeepsOneEntryAndOneToken) {
  auto client = open();
  auto mutex = client.mutex("a");
  mutex.lock();
  const auto token = mutex.token();
  mutex.lock();
  ASSERT_TRUE(mutex.try_lock());
  ASSERT_TRUE(mutex.try_lock_for(1s));
  ASSERT_TRUE(mutex.try_lock_until(std::chrono::steady_clock::now() + 1s));
  EXPECT_EQ(mutex.token(), token);
  EXPECT_EQ(entries("a"), 1u);
  for (int i = 0; i < 4; ++i) {
    mutex.unlock();
    EXPECT_TRUE(mutex.valid()) << "after unlock " << i + 1;
    EXPECT_EQ(entries("a"), 1u);
  }
  mutex.unlock();
  EXPECT_FALSE(mutex.valid());
  EXPECT_TRUE(in_line("a", 0));
  EXPECT_EQ(log_.count(LogLevel::error), 0u);
}

TEST_P(Reentry, AllHandlesOfOneClientShareTheCount) {
  auto client = open();
  auto one = client.mutex("a");
  auto two = client.mutex("a");
  one.lock();
  two.lock();
  EXPECT_EQ(one.token(), two.token());
  one.unlock();
  EXPECT_TRUE(two.valid());
  one.unlock();
  EXPECT_FALSE(two.valid());
  EXPECT_TRUE(in_line("a", 0));
}

TEST_P(Reentry, IsPerClient) {
  auto one = open();
  auto two = open();
  auto mutex = one.mutex("a");
  mutex.lock();
  EXPECT_FALSE(two.mutex("a").try_lock());
  EXPECT_FALSE(two.mutex("a").valid());
  mutex.unlock();
}

TEST_P(Reentry, IsPerThread) {
  auto client = open();
  auto mutex = client.mutex("a");
  mutex.lock();
  std::thread([&] {
    EXPECT_FALSE(mutex.try_lock());
    EXPECT_FALSE(mutex.valid());
    EXPECT_EQ(error_of([&] { (void)mutex.token(); }), Errc::not_held);
    EXPECT_EQ(error_of([&] { (void)mutex.lost_token(); }), Errc::not_held);
  }).join();
  EXPECT_TRUE(mutex.valid());
  mutex.unlock();
}

TEST_P(Reentry, UnlockWithoutHoldLogsOneErrorAndDoesNothing) {
  auto client = open();
  auto other = open();
  auto mutex = client.mutex("a");
  auto lock = other.mutex("a").acquire(patient());
  mutex.unlock();
  EXPECT_TRUE(soon("the error in the log", [&] { return log_.count(LogLevel::error) == 1; }));
  lock.verify();
  mutex.unlock();
  EXPECT_TRUE(soon("the second error", [&] { return log_.count(LogLevel::error) == 2; }));
  EXPECT_EQ(entries("a"), 1u);
}

TEST_P(Reentry, UnlockByAnotherThreadHasNoEffect) {
  auto client = open();
  auto mutex = client.mutex("a");
  mutex.lock();
  std::thread([&] { mutex.unlock(); }).join();
  EXPECT_TRUE(mutex.valid());
  EXPECT_EQ(entries("a"), 1u);
  EXPECT_TRUE(soon("the error in the log", [&] { return log_.count(LogLevel::error) == 1; }));
  mutex.unlock();
  EXPECT_TRUE(in_line("a", 0));
}

TEST_P(Reentry, UnlockTwiceReleasesNothingOfOthers) {
  auto client = open();
  auto other = open();
  auto mutex = client.mutex("a");
  mutex.lock();
  mutex.unlock();
  auto lock = other.mutex("a").acquire(patient());
  mutex.unlock();
  lock.verify();
  EXPECT_TRUE(lock.valid());
}

// baton identifies a thread by a serial number that is never used again. So a new thread with the
// id of an ended thread does not own the hold of that thread.
TEST_P(Reentry, ThreadThatEndedKeepsItsHold) {
  auto client = open();
  auto mutex = client.mutex("a");
  std::thread([&] { mutex.lock(); }).join();
  for (int i = 0; i < 20; ++i) {
    std::thread([&] {
      EXPECT_FALSE(mutex.valid());
      EXPECT_FALSE(mutex.try_lock());
    }).join();
  }
  EXPECT_EQ(entries("a"), 1u);
  client.close();
  EXPECT_TRUE(in_line("a", 0));
}

TEST_P(Reentry, LostHoldThrowsOnReentryUntilUnlocked) {
  auto client = open();
  auto other = open();
  auto mutex = client.mutex("a");
  mutex.lock();
  mutex.lock();
  const auto token = mutex.token();
  const auto lost = mutex.lost_token();
  EXPECT_FALSE(lost.stop_requested());
  ASSERT_TRUE(evict("a", token, other));
  ASSERT_TRUE(soon("the loss", [&] { return !mutex.valid() && lost.stop_requested(); }));
  EXPECT_EQ(mutex.token(), token) << "the token stays readable";
  EXPECT_EQ(error_of([&] { mutex.lock(); }), Errc::lock_lost);
  EXPECT_EQ(error_of([&] { (void)mutex.try_lock(); }), Errc::lock_lost);
  EXPECT_EQ(error_of([&] { (void)mutex.try_lock_for(1s); }), Errc::lock_lost);
  mutex.unlock();
  EXPECT_EQ(error_of([&] { mutex.lock(); }), Errc::lock_lost) << "one level is still to unlock";
  mutex.unlock();
  mutex.lock();
  EXPECT_GT(mutex.token(), token);
  EXPECT_TRUE(mutex.valid());
  mutex.unlock();
}

TEST_P(Reentry, ReleaseByUnlockNeverFiresLostToken) {
  auto client = open();
  auto mutex = client.mutex("a");
  mutex.lock();
  const auto lost = mutex.lost_token();
  mutex.unlock();
  ASSERT_TRUE(in_line("a", 0));
  client.close();
  EXPECT_FALSE(lost.stop_requested());
}

}  // namespace
}  // namespace baton::conformance
