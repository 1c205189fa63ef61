// Withdrawing from a queue of the etcd store at every stage of a join, and afterwards.
#include "fake_etcd_client.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::etcd {
namespace {

using namespace std::chrono_literals;

bool is_join(const FakeAsked& asked) {
  return asked.call == Call::txn && asked.as<etcdpb::TxnRequest>().success_size() == 2;
}
bool is_removal(const FakeAsked& asked) { return asked.call == Call::txn && !is_join(asked); }

class EtcdWithdrawTest : public ::testing::Test {
 protected:
  // Decides what happens to the next join only.
  void next_join(const FakeFate& fate) {
    ann.wire.fate = [fate, done = false](const FakeAsked& asked) mutable {
      return is_join(asked) && !std::exchange(done, true) ? fate : FakeFate{};
    };
  }
  void next_removal(const FakeFate& fate) {
    ann.wire.fate = [fate, done = false](const FakeAsked& asked) mutable {
      return is_removal(asked) && !std::exchange(done, true) ? fate : FakeFate{};
    };
  }
  std::size_t joins() {
    const auto log = ann.wire.take_log();
    return static_cast<std::size_t>(std::count_if(log.begin(), log.end(), is_join));
  }

  ManualLoop loop;
  FakeEtcd etcd{loop};
  FakeEtcdClient ann{etcd};
};

TEST_F(EtcdWithdrawTest, ReleaseIsOneTransactionThatComparesTheRevision) {
  const auto joined = ann.settled(ann.join(1));
  ann.wire.take_log();
  EXPECT_TRUE(ann.settled(ann.withdraw(1))->value().found);
  EXPECT_TRUE(ann.keys().empty());
  ASSERT_EQ(ann.wire.log().size(), 1u);
  const auto& compare = ann.wire.log()[0].as<etcdpb::TxnRequest>().compare(0);
  EXPECT_EQ(compare.target(), etcdpb::Compare::CREATE);
  EXPECT_EQ(static_cast<std::uint64_t>(compare.create_revision()), joined->value().token);
}

TEST_F(EtcdWithdrawTest, KeyThatWasCreatedAnewIsNotOurs) {
  ann.settled(ann.join(1));
  const std::string key = ann.keys()[0];
  etcd.remove(key);
  etcd.put(key);
  EXPECT_FALSE(ann.settled(ann.withdraw(1))->value().found);
  EXPECT_NE(etcd.find(key), nullptr);
}

TEST_F(EtcdWithdrawTest, NothingFoundAfterALostAnswerToOurRemovalIsOurs) {
  ann.settled(ann.join(1));
  next_removal(lost_answer());
  EXPECT_TRUE(transient(ann.settled(ann.withdraw(1))->error()));
  EXPECT_TRUE(ann.keys().empty());
  EXPECT_TRUE(ann.settled(ann.withdraw(1))->value().found);
}

TEST_F(EtcdWithdrawTest, RemovalThatNeverArrivedIsRepeated) {
  ann.settled(ann.join(1));
  next_removal(lost_request());
  EXPECT_TRUE(transient(ann.settled(ann.withdraw(1))->error()));
  EXPECT_EQ(ann.keys().size(), 1u);
  EXPECT_TRUE(ann.settled(ann.withdraw(1))->value().found);
  EXPECT_TRUE(ann.keys().empty());
}

TEST_F(EtcdWithdrawTest, RefusedRemovalSaysSoAndCanBeRepeated) {
  ann.settled(ann.join(1));
  next_removal(refused(7, "etcdserver: permission denied"));
  EXPECT_EQ(ann.settled(ann.withdraw(1))->error().errc(), Errc::permission_denied);
  EXPECT_TRUE(ann.settled(ann.withdraw(1))->value().found);
}

// ---- while the join is under way

TEST_F(EtcdWithdrawTest, JoinThatWaitsForItsTurnIsNeverSent) {
  ann.join(1);
  const auto joined = ann.join(2);
  EXPECT_TRUE(ann.withdraw(2)->ok()) << "nothing was sent";
  ann.pass(100ms);
  EXPECT_EQ(joins(), 1u);
  EXPECT_EQ(joined->error().errc(), Errc::cancelled);
  EXPECT_TRUE(holder(ann.settled(ann.look(1)), 1));
  ann.settled(ann.withdraw(1));
  EXPECT_TRUE(holder(ann.settled(ann.join(3)), 3)) << "and nobody else's turn was lost";
}

TEST_F(EtcdWithdrawTest, JoinThatWaitsForALeaseIsNeverSent) {
  FakeEtcdClient bob(etcd, {.open = false});
  const auto joined = bob.join(1);
  EXPECT_TRUE(bob.withdraw(1)->ok());
  bob.pass(100ms);
  EXPECT_EQ(bob.wire.count(Call::txn), 0u);
  EXPECT_EQ(joined->error().errc(), Errc::cancelled);
  EXPECT_TRUE(holder(bob.settled(bob.join(2)), 2));
}

TEST_F(EtcdWithdrawTest, JoinInFlightIsRemovedWhenItIsAnswered) {
  for (const auto wait : {0ms, 1ms}) {
    const std::uint64_t nonce = wait == 0ms ? 1 : 2;
    const auto joined = ann.join(nonce);
    loop.advance(wait);
    const auto first = ann.withdraw(nonce);
    const auto second = ann.withdraw(nonce);
    EXPECT_FALSE(first->got) << "nothing is proven yet";
    EXPECT_TRUE(ann.settled(first)->ok());
    EXPECT_TRUE(ann.settled(second)->ok());
    EXPECT_TRUE(ann.keys().empty());
    EXPECT_EQ(joined->error().errc(), Errc::cancelled);
  }
}

TEST_F(EtcdWithdrawTest, JoinInFlightThatIsRefusedIsGone) {
  next_join(refused(7, "etcdserver: permission denied"));
  ann.join(1);
  EXPECT_TRUE(ann.settled(ann.withdraw(1))->ok());
}

TEST_F(EtcdWithdrawTest, JoinInFlightThatIsLostIsRemoved) {
  for (const bool landed : {false, true}) {
    const std::uint64_t nonce = landed ? 2 : 1;
    ann.pass(100ms);  // the lease of an abandoned join is retired, and a new one is granted
    next_join(landed ? lost_answer() : lost_request());
    ann.join(nonce);
    const auto gone = ann.withdraw(nonce);
    ann.pass(500ms);
    EXPECT_EQ(ann.keys().size(), landed ? 1u : 0u);
    EXPECT_FALSE(gone->got);
    EXPECT_TRUE(ann.settled(gone)->ok());
    EXPECT_TRUE(ann.keys().empty());
  }
}

TEST_F(EtcdWithdrawTest, JoinInDoubtIsRemoved) {
  for (const bool landed : {false, true}) {
    const std::uint64_t nonce = landed ? 2 : 1;
    next_join(landed ? lost_answer() : lost_request());
    EXPECT_TRUE(transient(ann.settled(ann.join(nonce))->error()));
    EXPECT_TRUE(ann.settled(ann.withdraw(nonce))->value().found);
    EXPECT_TRUE(ann.keys().empty());
  }
}

// ---- joins that the server executes late

TEST_F(EtcdWithdrawTest, AbandonedTransactionCannotLandOnceItsLeaseIsRevoked) {
  const auto lease = etcd.leases().at(0);
  next_join(lands_after(1'500ms));
  ann.settled(ann.join(1));
  EXPECT_TRUE(ann.settled(ann.withdraw(1))->ok());
  ann.pass(100ms);
  EXPECT_FALSE(etcd.alive(lease)) << "it had no other key";
  ann.pass(5s);
  EXPECT_TRUE(ann.keys().empty());
  EXPECT_EQ(etcd.watchers(), 0u);
  EXPECT_TRUE(ann.ended.empty());
  EXPECT_TRUE(holder(ann.settled(ann.join(2)), 2)) << "under another";
}

TEST_F(EtcdWithdrawTest, AbandonedTransactionThatLandsIsRemovedAndItsLeaseRetired) {
  const auto lease = etcd.leases().at(0);
  ann.settled(ann.join(7, "other"));
  next_join(lands_after(1'500ms));
  ann.settled(ann.join(1));
  EXPECT_TRUE(ann.settled(ann.withdraw(1))->ok());
  ann.pass(100ms);
  EXPECT_TRUE(etcd.alive(lease)) << "somebody holds under it";
  EXPECT_EQ(etcd.watchers(), 1u);
  const auto before = etcd.revision();
  ann.pass(1s);
  EXPECT_EQ(etcd.revision(), before + 2) << "it landed, and was removed";
  EXPECT_TRUE(ann.keys().empty());
  EXPECT_TRUE(holder(ann.settled(ann.look(7, "other")), 7));
  EXPECT_TRUE(holder(ann.settled(ann.join(2)), 2));
  EXPECT_NE(etcd.find(ann.keys()[0])->lease(), lease) << "no new keys under it";
  ann.settled(ann.withdraw(7, "other"));
  ann.pass(100ms);
  EXPECT_FALSE(etcd.alive(lease)) << "revoked with its last key";
  EXPECT_EQ(etcd.watchers(), 0u);
  EXPECT_TRUE(ann.ended.empty());
}

TEST_F(EtcdWithdrawTest, DelayedFirstCopyOfASuccessfulJoinIsRemovedToo) {
  ann.settled(ann.join(7, "other"));
  next_join(lands_after(3s));
  ann.settled(ann.join(1));
  EXPECT_TRUE(holder(ann.settled(ann.join(1)), 1));
  EXPECT_TRUE(ann.settled(ann.withdraw(1))->value().found);
  EXPECT_TRUE(ann.keys().empty());
  const auto before = etcd.revision();
  ann.pass(3s);
  EXPECT_EQ(etcd.revision(), before + 2);
  EXPECT_TRUE(ann.keys().empty());
}

TEST_F(EtcdWithdrawTest, WhatLandsUnseenIsSwept) {
  ann.settled(ann.join(7, "other"));
  next_join(lands_after(1'500ms));
  ann.settled(ann.join(1));
  EXPECT_TRUE(ann.settled(ann.withdraw(1))->ok());
  ann.wire.swallow = [](std::size_t, StreamKind flow, const Message&) {
    return flow == StreamKind::watch;
  };
  ann.wire.break_streams(StreamKind::watch);
  ann.pass(1s);
  EXPECT_EQ(ann.keys().size(), 1u);
  ann.pass(4s);
  EXPECT_TRUE(ann.keys().empty());
  EXPECT_EQ(ann.keys("other").size(), 1u) << "and nothing else";
}

// Further abandoned joins do not delay the sweep.
TEST_F(EtcdWithdrawTest, SweepComesThoughMoreIsGivenUpMeanwhile) {
  ann.settled(ann.join(70, "other"));
  ann.wire.swallow = [](std::size_t, StreamKind flow, const Message&) {
    return flow == StreamKind::watch;
  };
  ann.wire.take_log();
  for (std::uint64_t nonce = 1; nonce <= 6; ++nonce) {
    next_join(lost_answer());
    ann.settled(ann.join(nonce));
    ann.settled(ann.withdraw(nonce));
    ann.pass(500ms);
  }
  EXPECT_GE(ann.wire.count(Call::lease_time_to_live), 1u);
}

TEST_F(EtcdWithdrawTest, StrayThatCannotBeRemovedAtOnceIsRemovedLater) {
  ann.settled(ann.join(7, "other"));
  next_join(lands_after(1'500ms));
  ann.settled(ann.join(1));
  EXPECT_TRUE(ann.settled(ann.withdraw(1))->ok());
  ann.wire.fate = [](const FakeAsked& asked) {
    return is_removal(asked) ? refused(8, "etcdserver: too many requests") : FakeFate{};
  };
  ann.pass(1s);
  EXPECT_EQ(ann.keys().size(), 1u);
  ann.wire.fate = nullptr;
  ann.pass(200ms);
  EXPECT_TRUE(ann.keys().empty());
}

TEST_F(EtcdWithdrawTest, TwoWithdrawalsOfALostJoinLeaveOneWatch) {
  const auto lease = etcd.leases().at(0);
  ann.settled(ann.join(7, "other"));
  next_join(lost_request());
  ann.join(1);
  const auto first = ann.withdraw(1);
  const auto second = ann.withdraw(1);
  EXPECT_TRUE(ann.settled(first)->ok());
  EXPECT_TRUE(ann.settled(second)->ok());
  ann.pass(100ms);
  EXPECT_EQ(etcd.watchers(), 1u);
  ann.settled(ann.withdraw(7, "other"));
  ann.pass(100ms);
  EXPECT_FALSE(etcd.alive(lease));
  EXPECT_EQ(etcd.watchers(), 0u);
}

}  // namespace
}  // namespace baton::etcd
