// Fencing tokens: each grant of a name has a token greater than those of all earlier grants.
#include "conformance/fixture.h"
#include "support/child.h"

#include <cstdint>
#include <limits>
#include <thread>

namespace baton::conformance {
namespace {

TEST_P(Tokens, IncreaseOverManyGrants) {
  auto client = open();
  auto mutex = client.mutex("a");
  std::uint64_t last = 0;
  for (int i = 0; i < rig().rounds(scaled(2000)); ++i) {
    auto lock = mutex.acquire(patient());
    ASSERT_GT(lock.token(), last) << "grant " << i;
    last = lock.token();
  }
}

TEST_P(Tokens, IncreaseAcrossClientsAndStyles) {
  auto one = open();
  auto two = open();
  std::uint64_t last = 0;
  for (int i = 0; i < rig().rounds(scaled(300)); ++i) {
    auto& client = i % 2 == 0 ? one : two;
    auto mutex = client.mutex("a");
    if (i % 3 == 0) {
      ASSERT_TRUE(mutex.try_lock_for(kLong));
      ASSERT_GT(mutex.token(), last);
      last = mutex.token();
      mutex.unlock();
    } else {
      auto lock = mutex.acquire(patient());
      ASSERT_GT(lock.token(), last);
      last = lock.token();
      lock.release();
    }
  }
}

// Finds a counter that is stored with the entries: it would start again when the queue is empty.
TEST_P(Tokens, SurviveAnEmptyStoreAndNewClients) {
  std::uint64_t last = 0;
  for (int i = 0; i < rig().rounds(scaled(30)); ++i) {
    auto client = open();
    auto lock = client.mutex("a").acquire(patient());
    ASSERT_GT(lock.token(), last) << "client " << i;
    last = lock.token();
  }
  EXPECT_TRUE(in_line("a", 0));
}

TEST_P(Tokens, StayReadableAfterReleaseAndLoss) {
  auto client = open();
  auto other = open();
  auto released = client.mutex("a").acquire(patient());
  const auto first = released.token();
  released.release();
  EXPECT_EQ(released.token(), first);
  EXPECT_EQ(released.name(), "a");
  auto lost = client.mutex("a").acquire(patient());
  const auto second = lost.token();
  ASSERT_TRUE(evict("a", second, other));
  ASSERT_TRUE(soon("the loss", [&] { return !lost.valid(); }));
  EXPECT_EQ(lost.token(), second);
  EXPECT_GT(second, first);
}

// Databases have signed columns. A token with the highest bit set would be refused or, worse, be
// smaller than all other tokens.
TEST_P(Tokens, FitASignedColumnOf64Bits) {
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  EXPECT_GT(lock.token(), 0u);
  EXPECT_LE(lock.token(), static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
}

TEST_P(Tokens, AreTheOnesShownByInspect) {
  auto client = open();
  auto other = open();
  auto lock = client.mutex("a").acquire(patient());
  auto waiting = later(other.mutex("a"));
  ASSERT_TRUE(in_line("a", 2));
  const auto snapshot = other.inspect("a");
  ASSERT_EQ(snapshot.entries.size(), 2u);
  EXPECT_EQ(snapshot.entries[0].token, lock.token());
  EXPECT_GT(snapshot.entries[1].token, lock.token());
  lock.release();
  ASSERT_TRUE(ready(waiting));
  EXPECT_EQ(waiting.get().token(), snapshot.entries[1].token);
}

TEST_P(Tokens, IncreaseAfterAnEvictedHolder) {
  auto one = open();
  auto two = open();
  auto lost = one.mutex("a").acquire(patient());
  auto waiting = later(two.mutex("a"));
  ASSERT_TRUE(in_line("a", 2));
  ASSERT_TRUE(evict("a", lost.token(), two));
  ASSERT_TRUE(ready(waiting));
  EXPECT_GT(waiting.get().token(), lost.token());
}

TEST_P(Tokens, IncreaseAcrossProcesses) {
  BATON_NEEDS(Can::cross_processes);
  auto client = open();
  std::uint64_t last = 0;
  for (int i = 0; i < rig().rounds(scaled(10)); ++i) {
    {
      auto lock = client.mutex("a").acquire(patient());
      ASSERT_GT(lock.token(), last);
      last = lock.token();
    }
    test::Child child({"wait", rig().url(), "a", "60000"});
    const auto line = child.line_with("held");
    ASSERT_TRUE(line);
    ASSERT_GT(test::number_in(*line, 2), last);
    last = test::number_in(*line, 2);
    EXPECT_EQ(child.exit_code(), 0);
  }
}

}  // namespace
}  // namespace baton::conformance
