// The cases that the sessions of all clusters share.
#pragma once

#include "fake_client.h"

#include <gtest/gtest.h>

namespace baton::internal {

template <class Store>
class SeamCases : public ::testing::Test {
 protected:
  std::size_t sent() { return store.wire(store.ann).take_log().size(); }
  Store store;
};
TYPED_TEST_SUITE_P(SeamCases);

TYPED_TEST_P(SeamCases, OthersStandAheadInTheirOrder) {
  auto& ann = this->store.ann;
  auto bob = this->store.second_client();
  const auto first = ann.settled(ann.join(1));
  const auto second = bob.settled(bob.join(1));
  const auto third = ann.settled(ann.join(2));
  EXPECT_TRUE(holder(first, 1));
  ASSERT_EQ(second->value().view.tickets.size(), 2u);
  EXPECT_EQ(second->value().view.tickets[0].id, first->value().view.tickets[0].id);
  EXPECT_FALSE(second->value().view.tickets[0].ours);
  EXPECT_LT(second->value().view.tickets[0].rank, second->value().view.tickets[1].rank);
  EXPECT_EQ(third->value().view.tickets[0].id, second->value().view.tickets[1].id);
  EXPECT_EQ(third->value().view.omitted_ahead, 1u);
  EXPECT_LT(first->value().token, second->value().token);
  EXPECT_LT(second->value().token, third->value().token);
  EXPECT_TRUE(bob.settled(bob.withdraw(1))->value().found);
  EXPECT_EQ(ann.settled(ann.look(2))->value().view.omitted_ahead, 0u);
}

TYPED_TEST_P(SeamCases, SecondJoinWithTheSameNonceFindsTheTicket) {
  auto& ann = this->store.ann;
  const auto first = ann.settled(ann.join(1));
  const auto again = ann.settled(ann.join(1));
  EXPECT_TRUE(holder(again, 1));
  EXPECT_EQ(again->value().token, first->value().token);
  EXPECT_EQ(this->store.entries().size(), 1u);
}

TYPED_TEST_P(SeamCases, EvictedEntryIsMissing) {
  auto& ann = this->store.ann;
  ann.settled(ann.join(1));
  this->store.remove(this->store.entries().at(0));
  EXPECT_TRUE(gone(ann.settled(ann.look(1))));
}

TYPED_TEST_P(SeamCases, LookForAnUnknownNonceIsMissing) {
  EXPECT_TRUE(gone(this->store.ann.settled(this->store.ann.look(9))));
  EXPECT_EQ(this->sent(), 0u);
}

TYPED_TEST_P(SeamCases, VerifyIsFalseForWhoeverIsNotFirst) {
  auto& ann = this->store.ann;
  ann.settled(ann.join(1));
  const auto first = this->store.entries().at(0);
  EXPECT_TRUE(ann.settled(ann.verify(1))->value());
  ann.settled(ann.join(2));
  EXPECT_FALSE(ann.settled(ann.verify(2))->value());
  EXPECT_FALSE(ann.settled(ann.verify(9))->value()) << "unknown";
  this->store.remove(first);
  EXPECT_FALSE(ann.settled(ann.verify(1))->value()) << "evicted";
  EXPECT_TRUE(ann.settled(ann.verify(2))->value());
}

// ---- leaving the queue

TYPED_TEST_P(SeamCases, OnlyTheNamedOneGoes) {
  auto& ann = this->store.ann;
  for (const std::uint64_t leaves : {1u, 2u}) {
    const std::uint64_t stays = 3 - leaves;
    ann.settled(ann.join(stays));
    const auto left = this->store.entries();
    ann.settled(ann.join(leaves));
    ann.settled(ann.withdraw(leaves));
    EXPECT_EQ(this->store.entries(), left);
    ann.settled(ann.withdraw(stays));
  }
}

TYPED_TEST_P(SeamCases, UnknownOneIsGoneAlready) {
  EXPECT_TRUE(this->store.ann.settled(this->store.ann.withdraw(9))->ok());
  EXPECT_EQ(this->sent(), 0u);
}

TYPED_TEST_P(SeamCases, ReleaseOfAnEvictedEntryFindsNothing) {
  auto& ann = this->store.ann;
  ann.settled(ann.join(1));
  this->store.remove(this->store.entries().at(0));
  EXPECT_FALSE(ann.settled(ann.withdraw(1))->value().found);
}

REGISTER_TYPED_TEST_SUITE_P(SeamCases, OthersStandAheadInTheirOrder,
                            SecondJoinWithTheSameNonceFindsTheTicket, EvictedEntryIsMissing,
                            LookForAnUnknownNonceIsMissing, VerifyIsFalseForWhoeverIsNotFirst,
                            OnlyTheNamedOneGoes, UnknownOneIsGoneAlready,
                            ReleaseOfAnEvictedEntryFindsNothing);

}  // namespace baton::internal
