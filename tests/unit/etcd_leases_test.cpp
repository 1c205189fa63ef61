// Leases and their keepalives.
#include "fake_etcd_leases.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::etcd {
namespace {

using namespace std::chrono_literals;

class EtcdLeasesTest : public EtcdLeasesFixture {};

TEST_F(EtcdLeasesTest, NothingIsGrantedAtFirst) {
  EXPECT_EQ(leases->deadline(), Time{});
  EXPECT_TRUE(leases->all().empty());
}

TEST_F(EtcdLeasesTest, DeadlineCountsFromWhenTheGrantWasSent) {
  const Time sent = loop.now();
  wire.fate = [](const FakeAsked&) { return FakeFate{.there = 300ms, .back = 400ms}; };
  ASSERT_GT(room(), 0);
  EXPECT_EQ(leases->deadline(), due(sent));
  EXPECT_EQ(leases->ttl(), kTtl);
  EXPECT_EQ(leases->suspect_at(), sent + 6s);
}

TEST_F(EtcdLeasesTest, SecondsAreRoundedUp) {
  LeasesListener& listener = *this;
  leases = std::make_unique<Leases>(loop, *link, 2'100ms, listener);
  room();
  EXPECT_EQ(leases->ttl(), 3s);
}

TEST_F(EtcdLeasesTest, ManyWhoWaitShareOneGrant) {
  int answered = 0;
  step([&] {
    for (int n = 0; n < 50; ++n) {
      leases->reserve_slot([&](const Result<std::int64_t>& lease) { answered += lease ? 1 : 0; });
    }
  });
  loop.advance(10ms);
  EXPECT_EQ(answered, 50);
  EXPECT_EQ(wire.count(Call::lease_grant), 1u);
}

TEST_F(EtcdLeasesTest, FailedGrantIsTold) {
  wire.fate = [](const FakeAsked&) { return refused(7, "etcdserver: permission denied"); };
  EXPECT_EQ(room(), -1);
  wire.fate = nullptr;
  EXPECT_GT(room(), 0);
}

// ---- keepalives

TEST_F(EtcdLeasesTest, KeepaliveGoesOutAtAThirdAndCountsFromThen) {
  const Time granted = loop.now();
  room();
  loop.advance(granted + 4s - loop.now() - 1ms);
  EXPECT_EQ(wire.sent(StreamKind::keep_alive), 0u);
  loop.advance(1ms);
  EXPECT_EQ(wire.sent(StreamKind::keep_alive), 1u);
  EXPECT_EQ(leases->deadline(), due(granted)) << "not before it is answered";
  loop.advance(10ms);
  EXPECT_EQ(leases->deadline(), due(granted + 4s));
  loop.advance(4s);
  EXPECT_EQ(leases->deadline(), due(granted + 8s));
}

TEST_F(EtcdLeasesTest, LivesAsLongAsItIsAnswered) {
  const auto id = room();
  for (int n = 0; n < 600; ++n) {
    loop.advance(100ms);
    ASSERT_GT(leases->deadline(), loop.now());
  }
  EXPECT_TRUE(etcd.alive(id));
  EXPECT_TRUE(lost.empty());
  EXPECT_EQ(link->current(), 0u);
}

TEST_F(EtcdLeasesTest, SilenceForASixthMovesToTheNextEndpoint) {
  const Time granted = loop.now();
  room();
  wire.silence(0);
  loop.advance(granted + 6s - loop.now() - 1ms);
  EXPECT_EQ(link->current(), 0u);
  loop.advance(1ms);
  EXPECT_EQ(link->current(), 1u);
  EXPECT_EQ(wire.path(0).renewed, 1);
  loop.advance(10ms);
  EXPECT_EQ(leases->deadline(), due(granted + 6s));
  EXPECT_EQ(wire.where(StreamKind::keep_alive), 1u);
}

TEST_F(EtcdLeasesTest, LateAnswersOfTheOldStreamDoNotCount) {
  const Time granted = loop.now();
  room();
  loop.advance(granted + 4s - loop.now());
  wire.silence(0);  // the answer is delayed
  wire.silence(1);
  loop.advance(4s);
  const Time before = leases->deadline();
  EXPECT_EQ(before, due(granted));
  wire.silence(0, false);
  loop.advance(1ms);
  EXPECT_EQ(leases->deadline(), before);
}

TEST_F(EtcdLeasesTest, EveryEndpointIsTriedBeforeTheLeaseRunsOut) {
  room();
  wire.silence(0);
  wire.silence(1);
  loop.advance(12s);
  EXPECT_GT(leases->deadline(), loop.now());
  EXPECT_EQ(wire.where(StreamKind::keep_alive), 2u);
}

TEST_F(EtcdLeasesTest, BrokenStreamIsOpenedAgainAtOnceElsewhere) {
  const Time granted = loop.now();
  room();
  loop.advance(granted + 4s - loop.now() + 10ms);
  wire.take_down(0);
  const Time broken = loop.now();
  loop.advance(10ms);
  EXPECT_EQ(wire.where(StreamKind::keep_alive), 1u);
  EXPECT_GE(leases->deadline(), due(broken));
}

TEST_F(EtcdLeasesTest, EndpointsThatAreAllDownAreTriedWithPauses) {
  room();
  loop.advance(5s);
  for (const std::size_t i : {0u, 1u, 2u}) wire.take_down(i);
  loop.advance(5s);
  const auto tried = wire.sent(StreamKind::keep_alive);
  EXPECT_GT(tried, 5u);
  EXPECT_LT(tried, 100u);
  wire.heal();
  loop.advance(2s);
  EXPECT_GT(leases->deadline(), loop.now() + 9s);
}

TEST_F(EtcdLeasesTest, DeadLeaseIsTheEnd) {
  etcd.revoke(room());
  loop.advance(4s + 10ms);
  EXPECT_EQ(lost.size(), 1u);
}

TEST_F(EtcdLeasesTest, MoreThanWasGrantedIsNotBelieved) {
  const Time granted = loop.now();
  room();
  etcd.keepalive_bonus = 100;
  loop.advance(5s);
  EXPECT_EQ(leases->deadline(), due(granted + 4s));
}

TEST_F(EtcdLeasesTest, LessThanWasGrantedIsBelieved) {
  const Time granted = loop.now();
  room();
  etcd.keepalive_bonus = -5;
  loop.advance(5s);
  EXPECT_EQ(leases->deadline(), lease_deadline(granted + 4s, 7s));
}

}  // namespace
}  // namespace baton::etcd
