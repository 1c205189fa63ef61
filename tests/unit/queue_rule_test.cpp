#include "common/recipe/queue_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace baton::internal {
namespace {

Ticket ticket(std::uint64_t rank, std::optional<std::uint64_t> ours = {}) {
  Ticket t;
  t.rank = rank;
  t.id = "t" + std::to_string(rank);
  if (ours) t.ours = Nonce(*ours);
  return t;
}

TEST(QueueRule, AloneIsHolder) {
  const auto j = judge({{ticket(7, 1)}, 0}, Nonce(1));
  EXPECT_EQ(j.verdict, Verdict::holder);
  EXPECT_FALSE(j.predecessor);
  EXPECT_EQ(j.ahead, 0u);
}

TEST(QueueRule, FirstOfManyIsHolder) {
  EXPECT_EQ(judge({{ticket(3, 1), ticket(4), ticket(5)}, 0}, Nonce(1)).verdict, Verdict::holder);
}

TEST(QueueRule, WatchesTheNearestAheadOnly) {
  const auto j = judge({{ticket(3), ticket(5), ticket(9, 1), ticket(12)}, 0}, Nonce(1));
  EXPECT_EQ(j.verdict, Verdict::waiting);
  ASSERT_TRUE(j.predecessor);
  EXPECT_EQ(j.predecessor->rank, 5u);
  EXPECT_EQ(j.predecessor->id, "t5");
  EXPECT_EQ(j.ahead, 2u);
}

TEST(QueueRule, OwnTicketsAheadCountLikeOthers) {
  const auto j = judge({{ticket(3, 1), ticket(5, 2)}, 0}, Nonce(2));
  EXPECT_EQ(j.verdict, Verdict::waiting);
  EXPECT_EQ(j.predecessor->ours, Nonce(1));
}

TEST(QueueRule, WithoutMyTicketIsMissing) {
  EXPECT_EQ(judge({}, Nonce(1)).verdict, Verdict::missing);
  EXPECT_EQ(judge({{ticket(3), ticket(4, 2)}, 0}, Nonce(1)).verdict, Verdict::missing);
  // A foreign ticket without a nonce is never taken for mine.
  EXPECT_EQ(judge({{ticket(3)}, 0}, Nonce(0)).verdict, Verdict::missing);
}

// A read that is cut off right before my ticket proves nothing, so it is never a grant.
TEST(QueueRule, CutOffReadingIsNeverAGrant) {
  const auto j = judge({{ticket(9, 1)}, 4}, Nonce(1));
  EXPECT_EQ(j.verdict, Verdict::incomplete);
  const auto k = judge({{ticket(8), ticket(9, 1)}, 4}, Nonce(1));
  EXPECT_EQ(k.verdict, Verdict::waiting);
  EXPECT_EQ(k.predecessor->rank, 8u);
  EXPECT_EQ(k.ahead, 5u);
}

TEST(QueueRule, RankDecidesNotTheOrderOfTheList) {
  const auto j = judge({{ticket(9, 1), ticket(3), ticket(5)}, 0}, Nonce(1));
  EXPECT_EQ(j.verdict, Verdict::waiting);
  EXPECT_EQ(j.predecessor->rank, 5u);
}

// Ranks are numbers: 10 comes after 9, and the largest ranks compare correctly.
TEST(QueueRule, RanksCompareAsNumbers) {
  EXPECT_EQ(judge({{ticket(9, 1), ticket(10)}, 0}, Nonce(1)).verdict, Verdict::holder);
  EXPECT_EQ(judge({{ticket(9), ticket(10, 1)}, 0}, Nonce(1)).verdict, Verdict::waiting);
  const auto max = ~std::uint64_t{0};
  EXPECT_EQ(judge({{ticket(max - 1, 1), ticket(max)}, 0}, Nonce(1)).verdict, Verdict::holder);
}

TEST(QueueRule, ExactlyOneOfAnyQueueHolds) {
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    QueueView view;
    std::uint64_t rank = random() % 100;
    const auto n = 1 + random() % 10;
    for (unsigned i = 0; i < n; ++i) {
      view.tickets.push_back(ticket(rank, i));
      rank += 1 + random() % 5;
    }
    std::shuffle(view.tickets.begin(), view.tickets.end(), random);
    unsigned holders = 0;
    for (unsigned i = 0; i < n; ++i) {
      const auto j = judge(view, Nonce(i));
      holders += j.verdict == Verdict::holder;
      EXPECT_EQ(j.ahead, i);
      if (i > 0) {
        ASSERT_TRUE(j.predecessor);
        EXPECT_EQ(j.predecessor->ours, Nonce(i - 1));
      }
    }
    EXPECT_EQ(holders, 1u);
  }
}

}  // namespace
}  // namespace baton::internal
