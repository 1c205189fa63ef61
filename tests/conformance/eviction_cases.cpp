// Eviction: the holder is notified within a second, its loss is final, and the next waiter is
// granted the lock.
#include "conformance/fixture.h"
#include "support/child.h"

#include <signal.h>

#include <atomic>
#include <thread>

namespace baton::conformance {
namespace {

// The limit that the contract sets while the client is connected.
constexpr milliseconds kNotice = 1'000ms;

TEST_P(Eviction, EndsTheHoldWithinASecondAndForGood) {
  auto one = open();
  auto two = open();
  auto lock = one.mutex("a").acquire(patient());
  EXPECT_FALSE(lock.lost_reason());
  std::atomic<int> fired{0};
  const std::stop_callback on_loss(lock.lost_token(), [&] { ++fired; });
  const Stopwatch watch;
  ASSERT_TRUE(evict("a", lock.token(), two));
  EXPECT_TRUE(soon("valid() to end", [&] { return !lock.valid(); }));
  EXPECT_TRUE(soon("lost_token() to fire", [&] { return fired == 1; }));
  EXPECT_LE(watch.elapsed(), kNotice + kSlack);
  EXPECT_EQ(lock.state(), LockState::lost);
  EXPECT_EQ(lock.lost_reason(), Errc::evicted);
  EXPECT_EQ(lock.valid_for(), 0ms);
  EXPECT_FALSE(static_cast<bool>(lock));
  // The loss is final, also after the same client has acquired the lock again.
  auto again = one.mutex("a").acquire(patient());
  EXPECT_TRUE(again.valid());
  EXPECT_FALSE(lock.valid());
  EXPECT_EQ(lock.state(), LockState::lost);
  EXPECT_EQ(fired, 1);
}

TEST_P(Eviction, ReleaseAndVerifyThenSayLost) {
  auto one = open();
  auto two = open();
  auto lock = one.mutex("a").acquire(patient());
  ASSERT_TRUE(evict("a", lock.token(), two));
  EXPECT_EQ(error_of([&] { lock.verify(); }), Errc::lock_lost);
  EXPECT_FALSE(lock.valid());
  EXPECT_EQ(error_of([&] { lock.release(); }), Errc::lock_lost);
}

// The client has no time to notice the eviction. So release() must report what the store answers,
// not the last state that the client knows.
TEST_P(Eviction, ReleaseRightAfterItNeverClaimsSuccess) {
  auto one = open();
  auto two = open();
  for (int i = 0; i < rig().rounds(scaled(50)); ++i) {
    auto lock = one.mutex("a").acquire(patient());
    ASSERT_TRUE(evict("a", lock.token(), two));
    auto next = two.mutex("a").acquire(patient());
    EXPECT_EQ(error_of([&] { lock.release(); }), Errc::lock_lost);
    next.verify();
    next.release();
  }
}

TEST_P(Eviction, OfTheHolderGrantsTheNextInLine) {
  auto one = open();
  auto two = open();
  auto three = open();
  auto lock = one.mutex("a").acquire(patient());
  auto waiting = later(two.mutex("a"));
  ASSERT_TRUE(in_line("a", 2));
  ASSERT_TRUE(evict("a", lock.token(), three));
  ASSERT_TRUE(ready(waiting));
  auto next = waiting.get();
  EXPECT_TRUE(next.valid());
  { Lock gone = std::move(lock); }  // this late release must not remove the new holder
  next.verify();
}

TEST_P(Eviction, OfAWaiterMakesItJoinAgainAtTheEnd) {
  auto one = open();
  auto two = open();
  auto three = open();
  auto lock = one.mutex("a").acquire(patient());
  auto second = later(two.mutex("a"));
  ASSERT_TRUE(in_line("a", 2));
  auto third = later(three.mutex("a"));
  ASSERT_TRUE(in_line("a", 3));
  const auto before = one.inspect("a");
  ASSERT_TRUE(one.evict("a", before.entries[1].id));
  ASSERT_TRUE(soon("the evicted waiter at the end of the line", [&] {
    const auto now = one.inspect("a");
    return now.entries.size() == 3 && now.entries[1].id == before.entries[2].id &&
           now.entries[2].id != before.entries[1].id;
  }));
  lock.release();
  ASSERT_TRUE(ready(third));
  EXPECT_EQ(second.wait_for(20ms), std::future_status::timeout);
  third.get().release();
  ASSERT_TRUE(ready(second));
  EXPECT_TRUE(second.get().valid());
}

TEST_P(Eviction, OfAWaiterDoesNotDisturbTheHolder) {
  auto one = open();
  auto two = open();
  auto lock = one.mutex("a").acquire(patient());
  auto waiting = later(two.mutex("a"));
  ASSERT_TRUE(in_line("a", 2));
  ASSERT_TRUE(two.evict("a", two.inspect("a").entries[1].id));
  lock.verify();
  EXPECT_TRUE(lock.valid());
  lock.release();
  ASSERT_TRUE(ready(waiting));
  EXPECT_TRUE(waiting.get().valid());
}

TEST_P(Eviction, ByTheHoldersOwnClientWorksToo) {
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  ASSERT_TRUE(evict("a", lock.token(), client));
  EXPECT_TRUE(soon("the loss", [&] { return lock.lost_token().stop_requested(); }));
  EXPECT_EQ(lock.lost_reason(), Errc::evicted);
}

TEST_P(Eviction, ByAnOperatorsHandIsNoticed) {
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  const auto id = client.inspect("a").entries.front().id;
  ASSERT_TRUE(rig().remove_entry("a", id));
  EXPECT_FALSE(rig().remove_entry("a", id));
  EXPECT_TRUE(soon(
      "the loss", [&] { return !lock.valid(); }, kNotice + kSlack));
}

TEST_P(Eviction, LostReasonIsSetOnlyByALoss) {
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  EXPECT_FALSE(lock.lost_reason());
  EXPECT_EQ(lock.state(), LockState::held);
  lock.release();
  EXPECT_FALSE(lock.lost_reason());
  EXPECT_EQ(lock.state(), LockState::released);
}

// The loss of one lock does not affect the other locks of the client.
TEST_P(Eviction, OfOneLockLeavesTheOthersAlone) {
  auto one = open();
  auto two = open();
  auto a = one.mutex("a").acquire(patient());
  auto b = one.mutex("b").acquire(patient());
  ASSERT_TRUE(evict("a", a.token(), two));
  ASSERT_TRUE(soon("the loss", [&] { return a.lost_token().stop_requested(); }));
  EXPECT_TRUE(b.valid());
  b.verify();
  EXPECT_FALSE(b.lost_token().stop_requested());
}

TEST_P(Eviction, OfAHolderInAnotherProcessIsNoticed) {
  BATON_NEEDS(Can::cross_processes);
  auto client = open();
  test::Child holder({"lose", rig().url(), "a"});
  const auto held = holder.line_with("held");
  ASSERT_TRUE(held);
  const auto start = boot_now();
  ASSERT_TRUE(evict("a", test::number_in(*held, 2), client));
  const auto lost = holder.line_with("lost");
  ASSERT_TRUE(lost);
  EXPECT_LE(std::chrono::nanoseconds(test::number_in(*lost, 1)) - start, kNotice + kSlack);
  EXPECT_EQ(test::number_in(*lost, 2), static_cast<unsigned>(Errc::evicted));
  EXPECT_EQ(holder.exit_code(), 0);
}

// A stopped process receives nothing. The other clients continue, and the process is notified when
// it continues.
TEST_P(Eviction, OfAStoppedHolderIsNoticedWhenItGoesOn) {
  BATON_NEEDS(Can::cross_processes);
  auto client = open();
  test::Child holder({"lose", rig().url(), "a"});
  const auto held = holder.line_with("held");
  ASSERT_TRUE(held);
  auto waiting = later(client.mutex("a"));
  ASSERT_TRUE(in_line("a", 2));
  ASSERT_TRUE(holder.stop());
  auto other = open();
  ASSERT_TRUE(evict("a", test::number_in(*held, 2), other));
  ASSERT_TRUE(ready(waiting));
  auto lock = waiting.get();
  EXPECT_GT(lock.token(), test::number_in(*held, 2));
  holder.signal(SIGCONT);
  EXPECT_TRUE(holder.line_with("lost"));
  EXPECT_EQ(holder.exit_code(), 0);
  lock.verify();
}

// Finds a grant to an entry that no longer exists (etcd#11456).
TEST_P(Eviction, RaceWithTheGrantNeverLeavesAHoldWithoutEntry) {
  auto one = open();
  auto two = open();
  for (int i = 0; i < rig().rounds(scaled(100)); ++i) {
    auto lock = one.mutex("a").acquire(patient());
    auto waiting = later(two.mutex("a"));
    ASSERT_TRUE(in_line("a", 2));
    const auto id = one.inspect("a").entries[1].id;
    std::jthread evicting([&] { (void)one.evict("a", id); });
    { Lock gone = std::move(lock); }
    ASSERT_TRUE(ready(waiting)) << "round " << i;
    evicting.join();
    auto mine = waiting.get();
    const auto snapshot = one.inspect("a");
    const bool there = !snapshot.entries.empty() && snapshot.entries[0].token == mine.token();
    const auto code = error_of([&] { mine.verify(); });
    EXPECT_EQ(code, there ? std::nullopt : std::optional(Errc::lock_lost)) << "round " << i;
    EXPECT_EQ(mine.valid(), there) << "round " << i;
  }
}

}  // namespace
}  // namespace baton::conformance
