// From one holder to the next: what is watched, and what is asked then.
#include "fake_etcd_client.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::internal {
namespace {

using namespace std::chrono_literals;

class EtcdHandoverTest : public ::testing::Test {
 protected:
  EtcdHandoverTest() {
    ann.settled(ann.join(1));
    standing = bob.settled(bob.join(1));
    events = bob.watch(standing->value().view.tickets.at(0), Nonce{1});
    bob.pass();
    EXPECT_EQ(*events, 0);
    bob.wire.take_log();
  }
  const etcdpb::RangeRequest& last_range() {
    return bob.wire.log().back().as<etcdpb::RangeRequest>();
  }

  ManualLoop loop;
  FakeEtcd etcd{loop, 3};
  FakeEtcdClient ann{etcd};
  FakeEtcdClient bob{etcd};
  AskedPtr<Standing> standing;
  std::shared_ptr<int> events;
};

TEST_F(EtcdHandoverTest, IsOneReadingOfTheMemberThatTold) {
  ann.settled(ann.withdraw(1));
  const auto revision = etcd.revision();
  etcd.put("x");
  bob.pass();
  ASSERT_EQ(*events, 1);
  EXPECT_TRUE(bob.wire.log().empty());
  EXPECT_TRUE(holder(bob.settled(bob.look(1)), 1));
  ASSERT_EQ(bob.wire.log().size(), 1u);
  EXPECT_TRUE(last_range().serializable());
  EXPECT_EQ(last_range().revision(), revision);
  EXPECT_EQ(bob.wire.log()[0].endpoint, 0u);
  EXPECT_FALSE(bob.wire.log()[0].options.require_leader);
}

TEST_F(EtcdHandoverTest, OnlyTheFirstLookAfterTheNewsIsPinned) {
  ann.settled(ann.withdraw(1));
  bob.pass();
  bob.settled(bob.look(1));
  bob.settled(bob.look(1));
  EXPECT_FALSE(last_range().serializable());
}

TEST_F(EtcdHandoverTest, FallsBackToTheClusterWhenTheMemberCannot) {
  ann.settled(ann.withdraw(1));
  bob.pass();
  etcd.put("x");
  etcd.compact(etcd.revision());
  EXPECT_TRUE(holder(bob.settled(bob.look(1)), 1));
  ASSERT_EQ(bob.wire.log().size(), 2u);
  EXPECT_FALSE(last_range().serializable());
}

TEST_F(EtcdHandoverTest, FallsBackToTheClusterWhenTheMemberIsGone) {
  ann.settled(ann.withdraw(1));
  bob.pass();
  bob.wire.take_down(0);
  EXPECT_TRUE(holder(bob.settled(bob.look(1)), 1));
  EXPECT_FALSE(last_range().serializable());
  EXPECT_NE(bob.wire.log().back().endpoint, 0u);
}

TEST_F(EtcdHandoverTest, AfterAGapTheClusterIsAsked) {
  bob.wire.break_streams(EtcdFlow::watch);
  ann.settled(ann.withdraw(1));
  bob.pass(1s);
  ASSERT_EQ(*events, 1);
  EXPECT_TRUE(holder(bob.settled(bob.look(1)), 1));
  ASSERT_EQ(bob.wire.count(EtcdCall::range), 1u);
  EXPECT_FALSE(last_range().serializable());
}

TEST_F(EtcdHandoverTest, OurOwnRemovalTellsTheNextOfOurs) {
  const auto third = bob.settled(bob.join(2));
  const auto told = bob.watch(third->value().view.tickets.at(0), Nonce{2});
  bob.pass();
  EXPECT_TRUE(bob.settled(bob.withdraw(1))->ok());
  EXPECT_EQ(*told, 1) << "together with the answer";
  EXPECT_EQ(bob.settled(bob.look(2))->value().view.tickets.size(), 2u);
  EXPECT_TRUE(last_range().serializable());
  ann.settled(ann.withdraw(1));
  EXPECT_TRUE(holder(bob.settled(bob.look(2)), 2));
}

TEST_F(EtcdHandoverTest, PredecessorThatOnlyWaitedIsNotTheHolder) {
  FakeEtcdClient eve(etcd);
  const auto third = eve.settled(eve.join(1));
  const auto told = eve.watch(third->value().view.tickets.at(0), Nonce{1});
  eve.pass();
  bob.settled(bob.withdraw(1));
  eve.pass();
  ASSERT_EQ(*told, 1);
  const auto look = eve.settled(eve.look(1));
  ASSERT_EQ(look->value().view.tickets.size(), 2u);
  EXPECT_EQ(look->value().view.tickets[0].rank, 2u);
}

// A look that began before the news came, and read after it, shows more than the news: whom it
// shows ahead must be watched from there. A look at the news would go back behind it.
TEST_F(EtcdHandoverTest, NewsThatIsOlderThanALookIsNotUsedAfterIt) {
  FakeEtcdClient eve(etcd);
  const auto third = eve.settled(eve.join(1));
  eve.watch(third->value().view.tickets.at(0), Nonce{1});
  eve.pass();
  eve.wire.fate = [](const FakeAsked&) { return FakeFate{.there = 20ms}; };
  const auto under_way = eve.look(1);
  bob.settled(bob.withdraw(1));  // the news
  ann.settled(ann.withdraw(1));  // and one more, which the look shows
  eve.settled(under_way);
  EXPECT_TRUE(holder(under_way, 1));
  const auto next = eve.settled(eve.look(1));
  EXPECT_TRUE(holder(next, 1)) << "ann is gone; nobody must wait for her";
}

TEST_F(EtcdHandoverTest, OwnKeyThatIsGoneIsAskedOfTheCluster) {
  const auto own = bob.watch(standing->value().view.tickets.at(1));
  bob.pass(200ms);
  ann.settled(ann.withdraw(1));
  etcd.remove(bob.keys().at(0));
  bob.pass(100ms);
  EXPECT_EQ(*own, 1);
  EXPECT_TRUE(gone(bob.settled(bob.look(1))));
  EXPECT_FALSE(last_range().serializable());
}

TEST_F(EtcdHandoverTest, MemberThatLagsGrantsLateButNeverWrongly) {
  // ann's entry goes, and bob's, too; the member that bob follows knows of neither.
  etcd.lag(0);
  ann.wire.take_down(0);
  ann.settled(ann.withdraw(1));
  bob.pass(100ms);
  EXPECT_EQ(*events, 0);
  loop.step([&] { etcd.catch_up(); });
  bob.pass();
  EXPECT_EQ(*events, 1);
  EXPECT_TRUE(holder(bob.settled(bob.look(1)), 1));
}

}  // namespace
}  // namespace baton::internal
