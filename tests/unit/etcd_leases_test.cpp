// Leases and their keepalives.
#include "etcd/etcd_leases.h"
#include "fake_etcd_client.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::internal {
namespace {

using namespace std::chrono_literals;

class EtcdLeasesTest : public ::testing::Test,
                       protected EtcdLinkListener,
                       protected EtcdLeasesListener {
 protected:
  static constexpr std::chrono::milliseconds kTtl{12'000};

  EtcdLeasesTest() {
    EtcdLinkListener& link_listener = *this;
    EtcdLeasesListener& listener = *this;
    link = std::make_unique<EtcdLink>(fake_link_parts(loop, wire, atlas), link_listener);
    leases = std::make_unique<EtcdLeases>(loop, *link, kTtl, listener);
  }
  std::int64_t room() {
    std::int64_t id = 0;
    loop.step([&] {
      leases->with_room([&id](const Result<std::int64_t>& lease) { id = lease ? *lease : -1; });
    });
    for (int n = 0; n < 10'000 && id == 0; ++n) loop.advance(1ms);
    return id;
  }
  std::int64_t key() {
    const auto id = room();
    loop.step([&] { leases->key_added(id); });
    return id;
  }
  void step(Task task) { loop.step(std::move(task)); }
  Time due(Time sent) const { return lease_deadline(sent, kTtl); }

  void link_left(std::size_t) override {}
  void link_back() override {}
  void link_store_changed(const std::string&) override {}
  void leases_renewed() override { ++renewed; }
  void leases_lost(const std::string& detail) override { lost.push_back(detail); }
  void lease_revoked(std::int64_t lease) override { revoked.push_back(lease); }

  ManualLoop loop;
  FakeEtcd etcd{loop, 3};
  FakeEtcdWire wire{etcd};
  EtcdAtlas atlas;
  std::unique_ptr<EtcdLink> link;
  std::unique_ptr<EtcdLeases> leases;
  int renewed = 0;
  std::vector<std::string> lost;
  std::vector<std::int64_t> revoked;
};

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
  EtcdLeasesListener& listener = *this;
  leases = std::make_unique<EtcdLeases>(loop, *link, 2'100ms, listener);
  room();
  EXPECT_EQ(leases->ttl(), 3s);
}

TEST_F(EtcdLeasesTest, ManyWhoWaitShareOneGrant) {
  int answered = 0;
  step([&] {
    for (int n = 0; n < 50; ++n) {
      leases->with_room([&](const Result<std::int64_t>& lease) { answered += lease ? 1 : 0; });
    }
  });
  loop.advance(10ms);
  EXPECT_EQ(answered, 50);
  EXPECT_EQ(wire.count(EtcdCall::lease_grant), 1u);
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
  EXPECT_EQ(wire.sent(EtcdFlow::keep_alive), 0u);
  loop.advance(1ms);
  EXPECT_EQ(wire.sent(EtcdFlow::keep_alive), 1u);
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
  EXPECT_EQ(wire.where(EtcdFlow::keep_alive), 1u);
}

TEST_F(EtcdLeasesTest, LateAnswersOfTheOldStreamDoNotCount) {
  const Time granted = loop.now();
  room();
  loop.advance(granted + 4s - loop.now());
  wire.silence(0);  // the answer is held up
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
  EXPECT_EQ(wire.where(EtcdFlow::keep_alive), 2u);
}

TEST_F(EtcdLeasesTest, BrokenStreamIsOpenedAgainAtOnceElsewhere) {
  const Time granted = loop.now();
  room();
  loop.advance(granted + 4s - loop.now() + 10ms);
  wire.take_down(0);
  const Time broken = loop.now();
  loop.advance(10ms);
  EXPECT_EQ(wire.where(EtcdFlow::keep_alive), 1u);
  EXPECT_GE(leases->deadline(), due(broken));
}

TEST_F(EtcdLeasesTest, EndpointsThatAreAllDownAreTriedWithPauses) {
  room();
  loop.advance(5s);
  for (const std::size_t i : {0u, 1u, 2u}) wire.take_down(i);
  loop.advance(5s);
  const auto tried = wire.sent(EtcdFlow::keep_alive);
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

// ---- several

TEST_F(EtcdLeasesTest, TheThousandAndFirstKeyGetsASecondLease) {
  const auto first = key();
  for (int n = 1; n < 1'000; ++n) ASSERT_EQ(key(), first);
  const auto second = key();
  EXPECT_NE(second, first);
  EXPECT_EQ(key(), second) << "the emptiest";
  EXPECT_EQ(etcd.leases().size(), 2u);
}

TEST_F(EtcdLeasesTest, DeadlineIsTheEarliestOfAll) {
  const Time first = loop.now();
  for (int n = 0; n < 1'000; ++n) key();
  loop.advance(1s);
  key();
  EXPECT_EQ(leases->deadline(), due(first));
  wire.swallow = [&](std::size_t, EtcdFlow, const EtcdMessage& message) {
    return static_cast<const etcdpb::LeaseKeepAliveRequest&>(message).id() == leases->all()[0];
  };
  loop.advance(first + 4'500ms - loop.now());
  EXPECT_EQ(leases->deadline(), due(first)) << "only the second was renewed";
}

TEST_F(EtcdLeasesTest, IdleExtraLeasesAreRevoked) {
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

// The keepalive of a lease that is being revoked is answered with "gone", or not at all.
TEST_F(EtcdLeasesTest, RevokingAnExtraLeaseIsNoSilence) {
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

TEST_F(EtcdLeasesTest, LostAnswersToRevocationsDoNotEndTheSession) {
  std::vector<std::int64_t> ids;
  for (int n = 0; n < 3; ++n) {
    ids.push_back(key());
    step([&] { leases->retire(ids.back()); });
    loop.advance(10ms);
  }
  const auto main = key();
  wire.fate = [](const FakeAsked& asked) {
    return asked.call == EtcdCall::lease_revoke ? lost_answer() : FakeFate{};
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

TEST_F(EtcdLeasesTest, LeaseThatIsBeingRevokedDoesNotShortenTheSession) {
  const auto old = key();
  step([&] { leases->retire(old); });
  loop.advance(10ms);
  key();
  wire.fate = [](const FakeAsked& asked) {
    return asked.call == EtcdCall::lease_revoke ? lost_answer() : FakeFate{};
  };
  step([&] { leases->key_gone(old); });
  for (int n = 0; n < 200; ++n) {
    loop.advance(100ms);
    ASSERT_GT(leases->deadline(), loop.now());
  }
}

TEST_F(EtcdLeasesTest, RetiredLeaseGetsNoNewKeysAndGoesWithItsLast) {
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

TEST_F(EtcdLeasesTest, RevocationIsTriedAgain) {
  const auto old = key();
  wire.fate = [](const FakeAsked& asked) {
    return asked.call == EtcdCall::lease_revoke ? lost_request() : FakeFate{};
  };
  step([&] { leases->retire(old); });
  step([&] { leases->key_gone(old); });
  loop.advance(9s);
  EXPECT_TRUE(etcd.alive(old));
  wire.fate = nullptr;
  loop.advance(20s);
  EXPECT_FALSE(etcd.alive(old));
}

// All are revoked, and the next grant fails: there is nothing to keep alive, and nobody is silent.
TEST_F(EtcdLeasesTest, WithoutLeasesNobodyIsTakenForSilent) {
  const auto old = key();
  wire.fate = [](const FakeAsked& asked) {
    return asked.call == EtcdCall::lease_grant ? refused(8, "etcdserver: too many requests")
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

TEST_F(EtcdLeasesTest, RevokeAllRevokesAll) {
  for (int n = 0; n < 1'001; ++n) key();
  bool done = false;
  step([&] { leases->revoke_all([&](const Result<Done>&) { done = true; }); });
  loop.advance(10ms);
  EXPECT_TRUE(done);
  EXPECT_TRUE(etcd.leases().empty());
  loop.advance(30s);
  EXPECT_TRUE(lost.empty());
}

TEST_F(EtcdLeasesTest, RevokeAllTriesOnElsewhere) {
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

TEST_F(EtcdLeasesTest, LeaseThatIsGrantedDuringTheEndIsRevokedToo) {
  int answered = 0;
  step([&] { leases->with_room([&](const Result<std::int64_t>&) { ++answered; }); });
  step([&] { leases->revoke_all([](const Result<Done>&) {}); });
  EXPECT_EQ(answered, 1) << "whoever waits is told";
  loop.advance(10ms);
  EXPECT_TRUE(etcd.leases().empty());
}

TEST_F(EtcdLeasesTest, WhoComesAfterTheEndIsTold) {
  room();
  step([&] { leases->revoke_all([](const Result<Done>&) {}); });
  for (int n = 0; n < 1'000; ++n) step([&] { leases->key_added(leases->all().at(0)); });
  EXPECT_EQ(room(), -1);
}

TEST_F(EtcdLeasesTest, DestroyedWithEverythingUnderWay) {
  for (int n = 0; n < 1'000; ++n) key();
  step([&] { leases->with_room([](const Result<std::int64_t>&) {}); });
  loop.advance(4s);
  step([&] { leases->revoke_all([](const Result<Done>&) { FAIL(); }); });
  step([&] { leases.reset(); });
  loop.advance(30s);
}

}  // namespace
}  // namespace baton::internal
