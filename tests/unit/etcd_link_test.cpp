// How the link of a session sends requests to the cluster.
#include "etcd_link_rig.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::etcd {
namespace {

using namespace std::chrono_literals;

TEST_F(EtcdLinkTest, AsksOneEndpointAsLongAsItAnswers) {
  make();
  for (int n = 0; n < 3; ++n) {
    const auto heard = range();
    loop.advance(5ms);
    EXPECT_TRUE(ok(heard));
    EXPECT_EQ(heard->endpoint, 0u);
  }
  EXPECT_TRUE(left.empty());
}

TEST_F(EtcdLinkTest, MovesOnWhenAnEndpointDoesNotAnswer) {
  make();
  wire.silence(0);
  const auto heard = range();
  loop.advance(1s);
  EXPECT_EQ(heard->statuses, std::vector{Status::lost});
  EXPECT_EQ(link_->current(), 1u);
  EXPECT_EQ(left, std::vector<std::size_t>{0});
  EXPECT_FALSE(link_->down()) << "one silence is no outage";
  const auto again = range();
  loop.advance(5ms);
  EXPECT_EQ(again->endpoint, 1u);
  EXPECT_EQ(back, 0);
}

TEST_F(EtcdLinkTest, TwoSilencesAreAnOutageWhoseEndIsTold) {
  make();
  for (const std::size_t endpoint : {0, 1}) wire.silence(endpoint);
  for (int n = 0; n < 2; ++n) range(), loop.advance(2s);
  EXPECT_TRUE(link_->down());
  for (const std::size_t endpoint : {0, 1}) wire.silence(endpoint, false);
  range(), loop.advance(5ms);
  EXPECT_FALSE(link_->down());
  EXPECT_EQ(back, 1);
}

TEST_F(EtcdLinkTest, MovesOnceForManyThatWereNotAnswered) {
  make();
  wire.silence(0);
  for (int n = 0; n < 20; ++n) range();
  loop.advance(1s);
  EXPECT_EQ(link_->current(), 1u);
  EXPECT_EQ(left.size(), 1u);
}

// Many requests that fail together count as one bad endpoint. The timeout at the next endpoint does
// not grow.
TEST_F(EtcdLinkTest, PatienceGrowsWithEndpointsNotWithRequests) {
  make();
  wire.silence(0);
  wire.silence(1);
  for (int n = 0; n < 20; ++n) range();
  loop.advance(1s);
  range();
  EXPECT_EQ(wire.log().back().endpoint, 1u);
  EXPECT_LE(wire.log().back().options.timeout, 2s);
}

TEST_F(EtcdLinkTest, SkipsWhatItKnowsToBeUnreachable) {
  make();
  wire.take_down(0);
  wire.take_down(1);
  const auto heard = range();
  loop.advance(5ms);
  EXPECT_EQ(heard->endpoint, 2u);
  EXPECT_TRUE(ok(heard));
}

TEST_F(EtcdLinkTest, TransactionIsNotSentWhileNobodyCanBeReached) {
  make();
  for (const std::size_t i : {0u, 1u, 2u}) wire.take_down(i);
  const auto heard = txn();
  EXPECT_EQ(heard->statuses, std::vector{Status::not_sent}) << "there is no doubt";
  EXPECT_TRUE(wire.log().empty());
  EXPECT_TRUE(link_->down());
}

TEST_F(EtcdLinkTest, MemberWithoutLeaderIsLeftAndNothingIsInDoubt) {
  make();
  etcd.member(0).no_leader = true;
  const auto heard = txn();
  loop.advance(5ms);
  EXPECT_EQ(heard->statuses, std::vector{Status::not_sent});
  EXPECT_EQ(link_->current(), 1u);
}

TEST_F(EtcdLinkTest, BusyServerIsNotLeft) {
  make();
  wire.fate = [](const FakeAsked&) { return refused(8, "etcdserver: too many requests"); };
  const auto heard = txn();
  loop.advance(5ms);
  EXPECT_EQ(heard->statuses, std::vector{Status::not_sent});
  EXPECT_EQ(link_->current(), 0u);
  EXPECT_FALSE(link_->down());
}

TEST_F(EtcdLinkTest, LateAnswersOfADeadLinkAreNotHeard) {
  make();
  const auto heard = range();
  loop.step([&] { link_.reset(); });
  loop.advance(2s);
  EXPECT_TRUE(heard->statuses.empty());
}

// The waiter repeats its request in the next session. A dead link must not keep the callback until
// the old request ends.
TEST_F(EtcdLinkTest, QuestionsOfADeadLinkKeepNobody) {
  make();
  wire.silence(0);
  const auto kept = std::make_shared<int>(0);
  loop.step([&] {
    link_->ask<etcdpb::RangeResponse>(Call::range, etcdpb::RangeRequest{}, {},
                                      [kept](Reply<etcdpb::RangeResponse>&) {});
  });
  loop.advance(5ms);
  EXPECT_GT(kept.use_count(), 1);
  loop.step([&] { link_.reset(); });
  EXPECT_EQ(kept.use_count(), 1);
  loop.advance(10s);
}

TEST_F(EtcdLinkTest, SilentStreamRenewsTheConnectionAndMovesOn) {
  make();
  loop.step([&] { link_->silent(0, "no answer"); });
  EXPECT_EQ(wire.path(0).renewed, 1);
  EXPECT_EQ(link_->current(), 1u);
  EXPECT_EQ(link_->trouble(), "node0: no answer");
}

// ---- the limit of requests under way

TEST_F(EtcdLinkTest, AtMost256AreUnderWay) {
  make();
  std::vector<std::shared_ptr<Heard>> all;
  for (int n = 0; n < 600; ++n) all.push_back(range());
  EXPECT_EQ(wire.most_under_way(), 256u);
  loop.advance(50ms);
  EXPECT_EQ(wire.most_under_way(), 256u);
  for (const auto& heard : all) EXPECT_TRUE(ok(heard));
}

TEST_F(EtcdLinkTest, UrgentOnesDoNotWaitForRoom) {
  make();
  for (int n = 0; n < 300; ++n) range();
  RequestOptions how;
  how.bypass_limit = true;
  range(how);
  EXPECT_EQ(wire.most_under_way(), 257u);
}

// ---- is it still the same store?

TEST_F(EtcdLinkTest, ForeignClusterIsAnotherStore) {
  make();
  range();
  loop.advance(5ms);
  etcd.member(0).cluster = 8;
  const auto heard = range();
  loop.advance(5ms);
  EXPECT_TRUE(heard->statuses.empty()) << "nothing it says counts";
  ASSERT_EQ(changed.size(), 1u);
  EXPECT_EQ(link_->current(), 1u);
  EXPECT_TRUE(cluster_state.foreign[0]);
}

TEST_F(EtcdLinkTest, ForeignEndpointIsAvoidedAfterwards) {
  cluster_state.cluster = 7;
  cluster_state.foreign = {false, true, false};
  make();
  wire.take_down(0);
  const auto heard = range();
  loop.advance(5ms);
  EXPECT_EQ(heard->endpoint, 2u);
  wire.take_down(2);
  wire.bring_up(0);
  const auto back_home = range();
  loop.advance(5ms);
  EXPECT_EQ(back_home->endpoint, 0u);
}

// A majority is enough: one endpoint may be gone for good and never agree.
TEST_F(EtcdLinkTest, ClusterThatWasBuiltAnewIsAcceptedOnceMostEndpointsAreOfIt) {
  for (const std::size_t i : {0u, 1u}) etcd.member(i).cluster = 8;
  wire.take_down(2);
  cluster_state.cluster = 7;
  for (int n = 0; n < 2; ++n) {
    changed.clear();
    make();
    range();
    loop.advance(5ms);
    EXPECT_EQ(changed.size(), 1u);
  }
  make();
  const auto heard = range();
  loop.advance(5ms);
  EXPECT_TRUE(ok(heard));
  EXPECT_EQ(cluster_state.cluster, 8u);
}

TEST_F(EtcdLinkTest, TwoOtherClustersAreNoMajority) {
  etcd.member(0).cluster = 8;
  etcd.member(1).cluster = 9;
  cluster_state.cluster = 7;
  for (int n = 0; n < 2; ++n) {
    make();
    range();
    loop.advance(5ms);
  }
  EXPECT_EQ(changed.size(), 2u);
  make();
  const auto heard = range();
  loop.advance(5ms);
  EXPECT_TRUE(ok(heard));
  EXPECT_EQ(heard->endpoint, 2u);
  EXPECT_EQ(cluster_state.cluster, 7u);
}

TEST_F(EtcdLinkTest, RevisionThatGoesBackIsAnotherStore) {
  make();
  for (int n = 0; n < 5; ++n) etcd.put("x");
  range();
  loop.advance(5ms);
  EXPECT_EQ(cluster_state.revision, etcd.revision());
  etcd.set_back(3);
  const auto heard = range();
  loop.advance(5ms);
  EXPECT_EQ(changed.size(), 1u);
  EXPECT_TRUE(heard->statuses.empty());
}

TEST_F(EtcdLinkTest, MemberThatLagsIsStillTheSameStore) {
  make();
  range();
  loop.advance(5ms);
  etcd.lag(1);
  for (int n = 0; n < 5; ++n) etcd.put("x");
  range();
  loop.advance(5ms);
  RequestOptions how;
  how.endpoint = 1;
  how.linearizable = false;
  const auto heard = range(how);
  loop.advance(5ms);
  EXPECT_TRUE(ok(heard));
  EXPECT_TRUE(changed.empty());
  EXPECT_EQ(cluster_state.revision, etcd.revision()) << "and what is known stays known";
}

TEST_F(EtcdLinkTest, AnswerThatIsOlderThanALaterOneIsFine) {
  make();
  wire.fate = [n = 0](const FakeAsked&) mutable {
    return n++ == 0 ? FakeFate{.back = 100ms} : FakeFate{};
  };
  const auto slow = range();
  loop.advance(5ms);
  etcd.put("x");
  const auto fast = range();
  loop.advance(200ms);
  EXPECT_TRUE(ok(slow));
  EXPECT_TRUE(ok(fast));
  EXPECT_TRUE(changed.empty());
}

// ---- authentication

TEST_F(EtcdLinkTest, ManyThatNeedATokenAuthenticateOnce) {
  etcd.require_users();
  make("ann");
  std::vector<std::shared_ptr<Heard>> all;
  for (int n = 0; n < 10; ++n) all.push_back(range());
  loop.advance(20ms);
  for (const auto& heard : all) EXPECT_TRUE(ok(heard));
  EXPECT_EQ(etcd.authentications, 1);
}

TEST_F(EtcdLinkTest, ExpiredTokenIsRenewedOnceAndTheRequestRepeated) {
  etcd.require_users();
  make("ann");
  range();
  loop.advance(20ms);
  etcd.expire_tokens();
  const auto first = range();
  const auto second = txn();
  loop.advance(20ms);
  EXPECT_TRUE(ok(first));
  EXPECT_TRUE(ok(second));
  EXPECT_EQ(etcd.authentications, 2);
}

TEST_F(EtcdLinkTest, LateWordOfAnOldTokenDoesNotCostTheNewOne) {
  etcd.require_users();
  make("ann");
  range();
  loop.advance(20ms);
  etcd.expire_tokens();
  wire.fate = [n = 0](const FakeAsked&) mutable {
    return n++ == 0 ? FakeFate{.back = 100ms} : FakeFate{};
  };
  const auto slow = range();
  const auto fast = range();
  loop.advance(300ms);
  EXPECT_TRUE(ok(slow));
  EXPECT_TRUE(ok(fast));
  EXPECT_EQ(etcd.authentications, 2);
}

TEST_F(EtcdLinkTest, TokenThatIsNeverGoodIsNotRenewedForEver) {
  etcd.require_users();
  make("ann");
  wire.fate = [](const FakeAsked& asked) {
    return asked.call == Call::authenticate ? FakeFate{}
                                            : refused(16, "etcdserver: invalid auth token");
  };
  const auto heard = range();
  loop.advance(1s);
  EXPECT_EQ(heard->statuses, std::vector{Status::not_sent}) << "it passes: tried again later";
  EXPECT_EQ(etcd.authentications, 2);
  std::shared_ptr<Heard> last;
  for (int n = 0; n < 10; ++n) last = range(), loop.advance(1s);
  EXPECT_EQ(last->statuses, std::vector{Status::token_expired}) << "it does not pass";
  wire.fate = nullptr;
  last = range(), loop.advance(1s);
  EXPECT_TRUE(ok(last)) << "whoever comes later tries again";
}

TEST_F(EtcdLinkTest, WrongPasswordIsFinal) {
  etcd.require_users();
  wire.fate = [](const FakeAsked&) {
    return refused(3, "etcdserver: authentication failed, invalid user ID or password");
  };
  make("ann");
  const auto heard = txn();
  loop.advance(20ms);
  EXPECT_EQ(heard->statuses, std::vector{Status::refused});
}

// A transaction that waits for a token was not sent, so it cannot have been executed.
TEST_F(EtcdLinkTest, TransactionIsNotInDoubtWhenTheTokenIsLate) {
  etcd.require_users();
  make("ann");
  wire.silence(0);
  const auto heard = txn();
  loop.advance(2s);
  EXPECT_EQ(heard->statuses, std::vector{Status::not_sent});
  EXPECT_EQ(wire.count(Call::txn), 0u);
}

TEST_F(EtcdLinkTest, WhoWaitsForRoomIsNotForgottenWhenTheTokenCannotBeRenewed) {
  etcd.require_users();
  make("ann");
  range();
  loop.advance(20ms);
  etcd.expire_tokens();
  wire.fate = [](const FakeAsked& asked) {
    return asked.call == Call::authenticate ? refused(3, "etcdserver: authentication failed")
                                            : FakeFate{};
  };
  std::vector<std::shared_ptr<Heard>> all;
  for (int n = 0; n < 300; ++n) all.push_back(range());
  loop.advance(1s);
  for (const auto& heard : all) EXPECT_EQ(heard->statuses.size(), 1u);
}

TEST_F(EtcdLinkTest, ServersWithoutUsersNeedNoToken) {
  make("ann");
  const auto heard = range();
  loop.advance(20ms);
  EXPECT_TRUE(ok(heard));
  EXPECT_TRUE(cluster_state.auth_off);
}

}  // namespace
}  // namespace baton::etcd
