// verify() asks the store whether the lock is held, and release() waits until the store has
// confirmed it. A release is never reported as a loss.
#include "conformance/fixture.h"

#include <atomic>

namespace baton::conformance {
namespace {

TEST_P(Releasing, IsConfirmedByTheStore) {
  auto one = open();
  auto two = open();
  for (int i = 0; i < rig().rounds(scaled(100)); ++i) {
    auto lock = one.mutex("a").acquire(patient());
    lock.release();
    // release() returns after the store has confirmed it, so these checks do not poll.
    ASSERT_EQ(entries("a"), 0u);
    auto next = two.mutex("a").try_acquire();
    ASSERT_TRUE(next);
    next->release();
  }
}

TEST_P(Releasing, EndsInReleasedAndCannotBeRepeated) {
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  lock.release();
  EXPECT_EQ(lock.state(), LockState::released);
  EXPECT_FALSE(lock.valid());
  EXPECT_EQ(lock.valid_for(), 0ms);
  EXPECT_EQ(error_of([&] { lock.release(); }), Errc::not_held);
  EXPECT_EQ(error_of([&] { lock.verify(); }), Errc::not_held);
}

TEST_P(Releasing, NeverFiresLostToken) {
  auto client = open();
  std::atomic<int> fired{0};
  auto lock = client.mutex("a").acquire(patient());
  const std::stop_callback on_loss(lock.lost_token(), [&] { ++fired; });
  const auto token = lock.lost_token();
  lock.release();
  auto dropped = client.mutex("a").acquire(patient());
  const std::stop_callback on_loss2(dropped.lost_token(), [&] { ++fired; });
  { Lock gone = std::move(dropped); }
  ASSERT_TRUE(in_line("a", 0));
  client.close();
  EXPECT_EQ(fired, 0);
  EXPECT_FALSE(token.stop_requested());
}

TEST_P(Releasing, NegativeTimeoutIsInvalidAndKeepsTheLock) {
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  EXPECT_EQ(error_of([&] { lock.release(-1ms); }), Errc::invalid_argument);
  EXPECT_EQ(error_of([&] { lock.verify(-1ms); }), Errc::invalid_argument);
  EXPECT_EQ(error_of([&] { lock.verify(milliseconds::min()); }), Errc::invalid_argument);
  EXPECT_TRUE(lock.valid());
  EXPECT_EQ(lock.state(), LockState::held);
  lock.verify();
  EXPECT_EQ(entries("a"), 1u);
}

TEST_P(Releasing, HugeTimeoutsDoNotOverflow) {
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  lock.verify(milliseconds::max());
  lock.release(milliseconds::max());
  EXPECT_EQ(lock.state(), LockState::released);
}

TEST_P(Releasing, ZeroTimeoutReleasesAtLeastInTheBackground) {
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  const auto code = error_of([&] { lock.release(0ms); });
  if (code) {
    EXPECT_EQ(*code, Errc::timeout);
  }
  EXPECT_EQ(lock.state(), LockState::released);
  EXPECT_TRUE(in_line("a", 0));
}

TEST_P(Releasing, VerifyKeepsTheHoldAsItIs) {
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  const auto token = lock.token();
  for (int i = 0; i < 20; ++i) lock.verify();
  EXPECT_EQ(lock.token(), token);
  EXPECT_EQ(lock.state(), LockState::held);
  EXPECT_EQ(entries("a"), 1u);
}

TEST_P(Releasing, UnlockAndDestructorHandOverWithoutBeingAsked) {
  auto one = open();
  auto two = open();
  auto mutex = one.mutex("a");
  mutex.lock();
  auto waiting = later(two.mutex("a"));
  ASSERT_TRUE(in_line("a", 2));
  mutex.unlock();
  ASSERT_TRUE(ready(waiting));
  auto held = std::make_unique<Lock>(waiting.get());
  auto again = later(one.mutex("a"));
  ASSERT_TRUE(in_line("a", 2));
  held.reset();
  ASSERT_TRUE(ready(again));
  EXPECT_TRUE(again.get().valid());
}

TEST_P(Releasing, HoldSaysHowLongItIsGood) {
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  EXPECT_GT(lock.valid_for(), 0ms);
  const auto timeout = client.session().timeout;
  EXPECT_LE(lock.valid_for(), timeout);
  if (timeout == milliseconds::max()) {
    EXPECT_EQ(lock.valid_for(), milliseconds::max());
  }
}

// A callback on lost_token() may call functions of the lost lock.
TEST_P(Releasing, IsAllowedInsideTheLossCallback) {
  auto one = open();
  auto two = open();
  auto lock = one.mutex("a").acquire(patient());
  const auto token = lock.token();
  std::atomic<int> code{0};
  const std::stop_callback on_loss(lock.lost_token(), [&] {
    code = static_cast<int>(error_of([&] { lock.release(); }).value_or(Errc::store_error));
  });
  ASSERT_TRUE(evict("a", token, two));
  EXPECT_TRUE(soon("the callback", [&] { return code != 0; }));
  EXPECT_EQ(code, static_cast<int>(Errc::lock_lost));
}

}  // namespace
}  // namespace baton::conformance
