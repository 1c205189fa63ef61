// The hand-over from one holder to the next: what is watched, and which requests follow.
#include "fake_etcd_client.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::etcd {
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

// One slow read is no reason to leave a member that answers everything else.
TEST_F(EtcdHandoverTest, ReadingThatTimesOutFallsBackToTheClusterAndKeepsTheMember) {
  ann.settled(ann.withdraw(1));
  bob.pass();
  bob.wire.fate = [](const FakeAsked& asked) {
    const bool pinned =
        asked.call == Call::range && asked.as<etcdpb::RangeRequest>().serializable();
    return pinned ? lost_answer() : FakeFate{};
  };
  EXPECT_TRUE(holder(bob.settled(bob.look(1)), 1));
  EXPECT_FALSE(last_range().serializable());
  EXPECT_EQ(bob.wire.log().back().endpoint, 0u);
  EXPECT_EQ(bob.session().info().endpoint, "node0");
  EXPECT_EQ(bob.wire.where(StreamKind::watch), 0u) << "its watches stay";
}

TEST_F(EtcdHandoverTest, AfterAGapTheClusterIsAsked) {
  bob.wire.break_streams(StreamKind::watch);
  ann.settled(ann.withdraw(1));
  bob.pass(1s);
  ASSERT_EQ(*events, 1);
  EXPECT_TRUE(holder(bob.settled(bob.look(1)), 1));
  ASSERT_EQ(bob.wire.count(Call::range), 1u);
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

// A look starts before an event comes and reads the store after it, so its result is newer than the
// event. The next look must not read at the revision of the event, which is older.
TEST_F(EtcdHandoverTest, NewsThatIsOlderThanALookIsNotUsedAfterIt) {
  FakeEtcdClient eve(etcd);
  const auto third = eve.settled(eve.join(1));
  eve.watch(third->value().view.tickets.at(0), Nonce{1});
  eve.pass();
  eve.wire.fate = [](const FakeAsked&) { return FakeFate{.there = 20ms}; };
  const auto under_way = eve.look(1);
  bob.settled(bob.withdraw(1));  // this removal is the event
  ann.settled(ann.withdraw(1));  // the look also shows this removal
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

// A read from before the removal of our key shows that we are first. The watch has reported the
// removal since then, so the read does not count: another client may hold the lock.
TEST_F(EtcdHandoverTest, ReadingFromBeforeOurOwnRemovalIsNotBelieved) {
  for (const bool pinned : {true, false}) {
    SCOPED_TRACE(pinned ? "one member alone" : "the cluster");
    FakeEtcd store{loop, 3};
    FakeEtcdClient first{store};
    FakeEtcdClient second{store};
    first.settled(first.join(1));
    const auto place = second.settled(second.join(1));
    const auto news = second.watch(place->value().view.tickets.at(0), Nonce{1});
    const auto own = second.watch(place->value().view.tickets.at(1));
    second.pass(200ms);
    first.settled(first.withdraw(1));
    second.pass();
    ASSERT_EQ(*news, 1);
    if (!pinned) second.settled(second.look(1));
    // The answer is correct when the server makes it.
    second.wire.fate = [](const FakeAsked& asked) {
      return asked.call == Call::range ? FakeFate{.back = 100ms} : FakeFate{.back = 150ms};
    };
    const auto look = second.look(1);
    second.pass(10ms);
    store.remove(second.keys().at(0));
    second.pass(20ms);
    EXPECT_FALSE(look->got);
    EXPECT_TRUE(gone(second.settled(look)));
    second.pass(500ms);
    EXPECT_EQ(*own, 1);
  }
}

// All keys of one lease share one request for the state of the lease.
TEST_F(EtcdHandoverTest, LeaseThatIsRevokedIsAskedForOnce) {
  for (const std::uint64_t n : {2U, 3U, 4U}) {
    const auto place = bob.settled(bob.join(n, "lock" + std::to_string(n)));
    bob.watch(place->value().view.tickets.at(0), {}, "lock" + std::to_string(n));
  }
  bob.pass(200ms);
  bob.wire.take_log();
  etcd.revoke(etcd.find(bob.keys("lock2").at(0))->lease());
  bob.pass(100ms);
  EXPECT_EQ(bob.wire.count(Call::lease_time_to_live), 1u);
  ASSERT_EQ(bob.ended.size(), 1u);
  EXPECT_EQ(bob.ended[0].first, Errc::session_expired);
}

// A holder whose key is gone must learn it soon, even if no server answers what became of the
// lease.
TEST_F(EtcdHandoverTest, WhoseKeyIsGoneHearsOfItThoughNobodyAnswers) {
  const auto own = bob.watch(standing->value().view.tickets.at(1));
  bob.pass(200ms);
  bob.wire.fate = [](const FakeAsked&) { return lost_answer(); };
  etcd.remove(bob.keys().at(1));
  bob.pass(200ms);
  EXPECT_FALSE(standing->value().sign->evicted());
  bob.pass(150ms);
  EXPECT_TRUE(standing->value().sign->evicted());
  EXPECT_EQ(*own, 1);
  bob.pass(2s);
  EXPECT_EQ(*own, 1) << "and once";
}

// The same if the client must authenticate first and no server answers.
TEST_F(EtcdHandoverTest, WhoseKeyIsGoneHearsOfItThoughItsTokenHasRunOut) {
  FakeEtcd store{loop, 3};
  store.require_users();
  FakeEtcdClient::Setup setup;
  setup.user = "app";
  FakeEtcdClient user(store, setup);
  const auto place = user.settled(user.join(1));
  ASSERT_TRUE(place->ok());
  const auto own = user.watch(place->value().view.tickets.at(0));
  user.pass(200ms);
  store.expire_tokens();
  user.wire.fate = [](const FakeAsked& asked) {
    return asked.call == Call::authenticate ? lost_answer() : FakeFate{};
  };
  store.remove(user.keys().at(0));
  user.pass(350ms);
  EXPECT_TRUE(place->value().sign->evicted());
  EXPECT_EQ(*own, 1);
}

TEST_F(EtcdHandoverTest, MemberThatLagsGrantsLateButNeverWrongly) {
  // ann's entry is removed. The member that bob follows does not know it yet.
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
}  // namespace baton::etcd
