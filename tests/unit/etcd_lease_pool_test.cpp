// Several leases of one session: when a lease is added, when one is revoked, and the end of all.
#include "fake_etcd_leases.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::etcd {
namespace {

using namespace std::chrono_literals;

class EtcdLeasePoolTest : public EtcdLeasesFixture {};

TEST_F(EtcdLeasePoolTest, TheThousandAndFirstKeyGetsASecondLease) {
  const auto first = key();
  for (int n = 1; n < 1'000; ++n) ASSERT_EQ(key(), first);
  const auto second = key();
  EXPECT_NE(second, first);
  EXPECT_EQ(key(), second) << "the emptiest";
  EXPECT_EQ(etcd.leases().size(), 2u);
}

TEST_F(EtcdLeasePoolTest, DeadlineIsTheEarliestOfAll) {
  const Time first = loop.now();
  for (int n = 0; n < 1'000; ++n) key();
  loop.advance(1s);
  key();
  EXPECT_EQ(leases->deadline(), due(first));
  wire.swallow = [&](std::size_t, StreamKind, const Message& message) {
    return static_cast<const etcdpb::LeaseKeepAliveRequest&>(message).id() == leases->all()[0];
  };
  loop.advance(first + 4'500ms - loop.now());
  EXPECT_EQ(leases->deadline(), due(first)) << "only the second was renewed";
}

// The deadline of a lease counts for the session from its first key on. LossThread checks deadlines
// only every 500 ms, so it would report a loss late if the deadline were suddenly near.
TEST_F(EtcdLeasePoolTest, LeaseThatWasNotRenewedForLongDoesNotGetItsFirstKey) {
  const auto first = key();
  for (int n = 1; n < 1'000; ++n) key();
  const auto second = key();
  ASSERT_NE(second, first);
  loop.step([&] {
    leases->key_gone(second);
    for (int n = 0; n < 10; ++n) leases->key_gone(first);
  });
  wire.swallow = [&](std::size_t, StreamKind flow, const Message& message) {
    return flow == StreamKind::keep_alive &&
           static_cast<const etcdpb::LeaseKeepAliveRequest&>(message).id() == second;
  };
  ASSERT_EQ(key(), second);
  loop.advance(7s);
  loop.step([&] { leases->key_gone(second); });
  const Time before = leases->deadline();
  ASSERT_GT(before, loop.now() + 6s) << "the first lease was renewed";
  EXPECT_EQ(key(), first);
  EXPECT_GE(leases->deadline(), before);
}

// The time of a lease counts from its request. A slow grant must not end the holds of other leases.
class EtcdSlowGrantTest : public EtcdLeasesFixture {
 protected:
  EtcdSlowGrantTest() {
    LeasesListener& listener = *this;
    leases = std::make_unique<Leases>(loop, *link, 2'000ms, listener);
    for (int n = 0; n < 1'000; ++n) key();
    wire.fate = [](const FakeAsked& asked) {
      return asked.call == Call::lease_grant ? FakeFate{.back = 990ms} : FakeFate{};
    };
    loop.step([&] {
      leases->reserve_slot([this](const Result<std::int64_t>& lease) {
        got = lease ? *lease : -1;
        leases->key_added(got);
        left = leases->deadline() - loop.now();
      });
    });
  }
  std::int64_t got = 0;
  Nanos left{};
};

TEST_F(EtcdSlowGrantTest, LeaseIsRenewedBeforeAnybodyGetsIt) {
  for (int n = 0; n < 1'200 && got == 0; ++n) loop.advance(1ms);
  EXPECT_GT(got, 0);
  EXPECT_GT(left, 1s);
  loop.advance(10s);
  EXPECT_TRUE(lost.empty());
  EXPECT_EQ(leases->all().size(), 2u);
}

// The renewals of the other leases stay on schedule.
TEST_F(EtcdSlowGrantTest, RenewalOfOneAloneDoesNotPutOffThoseOfTheOthers) {
  const auto first = leases->all()[0];
  std::vector<Time> sent;
  wire.swallow = [&](std::size_t, StreamKind flow, const Message& message) {
    if (flow == StreamKind::keep_alive &&
        static_cast<const etcdpb::LeaseKeepAliveRequest&>(message).id() == first) {
      sent.push_back(loop.now());
    }
    return false;
  };
  loop.advance(6s);
  ASSERT_GE(sent.size(), 8u);
  for (std::size_t i = 1; i < sent.size(); ++i) EXPECT_LE(sent[i] - sent[i - 1], 670ms);
  EXPECT_EQ(wire.path(0).renewed, 0) << "nobody was taken for silent";
}

TEST_F(EtcdSlowGrantTest, LeaseThatIsOverByThenIsReplaced) {
  loop.advance(991ms);  // granted, and its keepalive is under way
  ASSERT_EQ(got, 0);
  ASSERT_EQ(leases->all().size(), 2u);
  const auto dead = leases->all()[1];
  etcd.revoke(dead);
  wire.fate = nullptr;
  loop.advance(100ms);
  EXPECT_GT(got, 0);
  EXPECT_NE(got, dead);
  EXPECT_TRUE(lost.empty()) << "nobody had it";
}

TEST_F(EtcdLeasePoolTest, IdleExtraLeasesAreRevoked) {
  std::vector<std::int64_t> ids;
  for (int n = 0; n < 1'001; ++n) ids.push_back(key());
  step([&] {
    for (const auto id : ids) leases->key_gone(id);
  });
  loop.advance(20s);
  EXPECT_EQ(leases->all().size(), 1u);
  EXPECT_EQ(etcd.leases(), leases->all());
  EXPECT_TRUE(lost.empty());
}

// The keepalive of a lease that is being revoked is answered with "gone" or not at all.
TEST_F(EtcdLeasePoolTest, RevokingAnExtraLeaseIsNoSilence) {
  for (int n = 0; n < 1'000; ++n) key();
  const auto slow = [](Nanos there, Nanos back) { return FakeFate{.there = there, .back = back}; };
  for (const auto& fate : {slow(1ms, 1ms), slow(5ms, 1ms), slow(1ms, 300ms), slow(300ms, 1ms)}) {
    const auto extra = key();
    step([&] { leases->key_gone(extra); });
    wire.fate = [fate](const FakeAsked&) { return fate; };
    loop.advance(20s);
    EXPECT_EQ(leases->all().size(), 1u);
    EXPECT_EQ(wire.path(0).renewed, 0) << "the endpoint was taken for silent";
    EXPECT_EQ(link->current(), 0u);
    wire.fate = nullptr;
  }
}

TEST_F(EtcdLeasePoolTest, LostAnswersToRevocationsDoNotEndTheSession) {
  std::vector<std::int64_t> ids;
  for (int n = 0; n < 3; ++n) {
    ids.push_back(key());
    step([&] { leases->retire(ids.back()); });
    loop.advance(10ms);
  }
  const auto main = key();
  wire.fate = [](const FakeAsked& asked) {
    return asked.call == Call::lease_revoke ? lost_answer() : FakeFate{};
  };
  step([&] {
    for (const auto id : ids) leases->key_gone(id);
  });
  loop.advance(10s);
  wire.fate = nullptr;
  loop.advance(30s);
  EXPECT_TRUE(lost.empty());
  EXPECT_EQ(leases->all(), std::vector{main});
  EXPECT_EQ(revoked.size(), 3u);
}

TEST_F(EtcdLeasePoolTest, LeaseThatIsBeingRevokedDoesNotShortenTheSession) {
  const auto old = key();
  step([&] { leases->retire(old); });
  loop.advance(10ms);
  key();
  wire.fate = [](const FakeAsked& asked) {
    return asked.call == Call::lease_revoke ? lost_answer() : FakeFate{};
  };
  step([&] { leases->key_gone(old); });
  for (int n = 0; n < 200; ++n) {
    loop.advance(100ms);
    ASSERT_GT(leases->deadline(), loop.now());
  }
}

TEST_F(EtcdLeasePoolTest, RetiredLeaseGetsNoNewKeysAndGoesWithItsLast) {
  const auto old = key();
  step([&] { leases->key_added(old); });
  step([&] { leases->retire(old); });
  loop.advance(10ms);
  const auto next = room();
  EXPECT_NE(next, old);
  step([&] { leases->key_gone(old); });
  loop.advance(10ms);
  EXPECT_TRUE(etcd.alive(old));
  loop.advance(20s);
  EXPECT_TRUE(etcd.alive(old)) << "it has a key: it is kept alive";
  step([&] { leases->key_gone(old); });
  loop.advance(10ms);
  EXPECT_FALSE(etcd.alive(old));
  EXPECT_EQ(revoked, std::vector{old});
  EXPECT_EQ(leases->all(), std::vector{next});
}

TEST_F(EtcdLeasePoolTest, RevocationIsTriedAgain) {
  const auto old = key();
  wire.fate = [](const FakeAsked& asked) {
    return asked.call == Call::lease_revoke ? lost_request() : FakeFate{};
  };
  step([&] { leases->retire(old); });
  step([&] { leases->key_gone(old); });
  loop.advance(9s);
  EXPECT_TRUE(etcd.alive(old));
  wire.fate = nullptr;
  loop.advance(20s);
  EXPECT_FALSE(etcd.alive(old));
}

// All leases are revoked, and the next grant fails. The session has no lease to keep alive, so no
// endpoint counts as silent.
TEST_F(EtcdLeasePoolTest, WithoutLeasesNobodyIsTakenForSilent) {
  const auto old = key();
  wire.fate = [](const FakeAsked& asked) {
    return asked.call == Call::lease_grant ? refused(8, "etcdserver: too many requests")
                                           : FakeFate{};
  };
  step([&] { leases->retire(old); });
  step([&] { leases->key_gone(old); });
  loop.advance(30s);
  EXPECT_TRUE(leases->all().empty());
  EXPECT_EQ(wire.path(0).renewed, 0);
  wire.fate = nullptr;
  loop.advance(4s);
  EXPECT_EQ(leases->all().size(), 1u) << "asked for again";
  loop.step([&] { leases->retire(leases->all().at(0)); });
  const Time sent = loop.now();
  EXPECT_GT(room(), 0);
  EXPECT_EQ(leases->deadline(), due(sent));
  loop.advance(30s);
  EXPECT_GT(leases->deadline(), loop.now()) << "and it is kept alive";
}

// ---- the end

TEST_F(EtcdLeasePoolTest, RevokeAllRevokesAll) {
  for (int n = 0; n < 1'001; ++n) key();
  bool done = false;
  step([&] { leases->revoke_all([&](const Result<Done>&) { done = true; }); });
  loop.advance(10ms);
  EXPECT_TRUE(done);
  EXPECT_TRUE(etcd.leases().empty());
  loop.advance(30s);
  EXPECT_TRUE(lost.empty());
}

TEST_F(EtcdLeasePoolTest, RevokeAllTriesOnElsewhere) {
  room();
  wire.silence(0);
  bool done = false;
  step([&] { leases->revoke_all([&](const Result<Done>&) { done = true; }); });
  loop.advance(500ms);
  EXPECT_FALSE(done);
  loop.advance(1s);
  EXPECT_TRUE(done);
  EXPECT_TRUE(etcd.leases().empty());
}

TEST_F(EtcdLeasePoolTest, LeaseThatIsGrantedDuringTheEndIsRevokedToo) {
  int answered = 0;
  step([&] { leases->reserve_slot([&](const Result<std::int64_t>&) { ++answered; }); });
  step([&] { leases->revoke_all([](const Result<Done>&) {}); });
  EXPECT_EQ(answered, 1) << "whoever waits is told";
  loop.advance(10ms);
  EXPECT_TRUE(etcd.leases().empty());
}

TEST_F(EtcdLeasePoolTest, WhoComesAfterTheEndIsTold) {
  room();
  step([&] { leases->revoke_all([](const Result<Done>&) {}); });
  for (int n = 0; n < 1'000; ++n) step([&] { leases->key_added(leases->all().at(0)); });
  EXPECT_EQ(room(), -1);
}

TEST_F(EtcdLeasePoolTest, DestroyedWithEverythingUnderWay) {
  for (int n = 0; n < 1'000; ++n) key();
  step([&] { leases->reserve_slot([](const Result<std::int64_t>&) {}); });
  loop.advance(4s);
  step([&] { leases->revoke_all([](const Result<Done>&) { FAIL(); }); });
  step([&] { leases.reset(); });
  loop.advance(30s);
}

}  // namespace
}  // namespace baton::etcd
