// Keepalives with servers that check the token of the stream for every message.
#include "fake_etcd_leases.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::etcd {
namespace {

using namespace std::chrono_literals;

class EtcdKeepaliveAuthTest : public EtcdLeasesFixture {
 protected:
  EtcdKeepaliveAuthTest() {
    etcd.require_users();
    make();
  }
  void make(const std::string& password = "secret") {
    LinkListener& link_listener = *this;
    LeasesListener& listener = *this;
    leases.reset();
    auto parts = fake_link_parts(loop, wire, cluster_state);
    parts.user = "ann";
    parts.password = password;
    link = std::make_unique<Link>(std::move(parts), link_listener);
    leases = std::make_unique<Leases>(loop, *link, kTtl, listener);
  }
  // Waits until the deadline has moved and is at least `ahead` away. False: this took too long.
  bool renewed_within(Nanos limit, Nanos ahead) {
    const Time until = loop.now() + limit;
    const Time before = leases->deadline();
    const auto moved = [&] {
      return leases->deadline() > before && leases->deadline() >= loop.now() + ahead;
    };
    while (loop.now() < until && !moved()) loop.advance(1ms);
    return moved();
  }
  void to_next_beat() {
    const auto before = wire.sent(StreamKind::keep_alive);
    for (int n = 0; n < 10'000 && wire.sent(StreamKind::keep_alive) == before; ++n)
      loop.advance(1ms);
  }
  static FakeFate no_authentication(const FakeAsked& asked) {
    return asked.call == Call::authenticate ? lost_request() : FakeFate{};
  }
};

TEST_F(EtcdKeepaliveAuthTest, StreamIsOpenedWithTheToken) {
  key();
  to_next_beat();
  loop.advance(10ms);
  EXPECT_EQ(etcd.refused_keepalives, 0);
  EXPECT_EQ(etcd.authentications, 1);
  EXPECT_GT(leases->deadline(), loop.now() + 11s);
}

// The token is forgotten before there is a stream. The client first requests a new token.
TEST_F(EtcdKeepaliveAuthTest, StreamIsNotOpenedWithoutAToken) {
  key();
  etcd.expire_tokens();
  loop.step([&] { link->forget_token(link->token()); });
  to_next_beat();
  loop.advance(10ms);
  EXPECT_EQ(etcd.refused_keepalives, 0);
  EXPECT_EQ(etcd.authentications, 2);
  EXPECT_GT(leases->deadline(), loop.now() + 11s);
}

TEST_F(EtcdKeepaliveAuthTest, RefusedKeepaliveIsSentAgainWithANewToken) {
  const auto id = key();
  to_next_beat();
  loop.advance(10ms);
  for (const CallResult& why : {CallResult{16, "etcdserver: invalid auth token"},
                                CallResult{3, "etcdserver: revision of auth store is old"},
                                CallResult{3, "etcdserver: user name is empty"},
                                CallResult{7, "etcdserver: permission denied"}}) {
    SCOPED_TRACE(why.message);
    etcd.keepalive_refusal = why;
    etcd.expire_tokens();
    const auto before = etcd.authentications;
    const auto refusals = etcd.refused_keepalives;
    to_next_beat();
    EXPECT_TRUE(renewed_within(20ms, 11s)) << "the next beat comes only a third later";
    EXPECT_EQ(etcd.refused_keepalives, refusals + 1);
    EXPECT_EQ(etcd.authentications, before + 1);
  }
  EXPECT_EQ(link->current(), 0u) << "the endpoint is good";
  EXPECT_TRUE(etcd.alive(id));
  EXPECT_TRUE(lost.empty());
}

// Tokens expire every few seconds, as JSON web tokens can, and the client sends only keepalives.
TEST_F(EtcdKeepaliveAuthTest, LeaseOutlivesManyTokens) {
  const auto id = key();
  int beats = 0;
  for (int n = 0; n < 3'000; ++n) {
    if (n % 25 == 0) etcd.expire_tokens();
    loop.advance(100ms);
    ASSERT_GT(leases->deadline(), loop.now() + 7s) << "as if there were no tokens";
    beats = static_cast<int>(wire.sent(StreamKind::keep_alive));
  }
  EXPECT_TRUE(etcd.alive(id));
  EXPECT_LE(etcd.authentications, beats / 2 + 2);
}

// Another call has already received a newer token. The next keepalive uses it, so that no stream is
// refused.
TEST_F(EtcdKeepaliveAuthTest, BeatTakesTheNewerTokenOfOtherCalls) {
  key();
  to_next_beat();
  loop.advance(10ms);
  etcd.expire_tokens();
  loop.step([&] {
    etcdpb::RangeRequest request;
    request.set_key("k");
    link->ask<etcdpb::RangeResponse>(Call::range, request, {}, [](auto&) {});
  });
  loop.advance(10ms);
  ASSERT_EQ(etcd.authentications, 2);
  to_next_beat();
  EXPECT_TRUE(renewed_within(10ms, 11s));
  EXPECT_EQ(etcd.refused_keepalives, 0);
}

TEST_F(EtcdKeepaliveAuthTest, UsersMayBeTurnedOnLater) {
  FakeEtcd open{loop};
  FakeEtcdWire way{open};
  ClusterState map;
  LinkListener& link_listener = *this;
  LeasesListener& listener = *this;
  leases.reset();
  auto parts = fake_link_parts(loop, way, map);
  parts.user = "ann";
  parts.password = "secret";
  link = std::make_unique<Link>(std::move(parts), link_listener);
  leases = std::make_unique<Leases>(loop, *link, kTtl, listener);
  const auto id = key();
  loop.advance(5s);
  EXPECT_EQ(open.authentications, 0);
  open.require_users();
  loop.advance(30s);
  EXPECT_TRUE(open.alive(id));
  EXPECT_EQ(open.authentications, 1);
  EXPECT_TRUE(lost.empty());
  leases.reset();
  link.reset();
}

// ---- problems with a token do not delay keepalives

// Older servers do not check the tokens of keepalives. With them a missing token must not stop the
// renewals.
TEST_F(EtcdKeepaliveAuthTest, AuthenticationWithoutAnAnswerDoesNotHoldUpBeats) {
  etcd.checks_keepalives = false;
  key();
  to_next_beat();
  loop.advance(10ms);
  wire.fate = no_authentication;
  etcd.expire_tokens();
  for (int n = 0; n < 600; ++n) {
    if (n % 50 == 0) {
      loop.step([&] { link->forget_token(link->token()); });
      wire.break_streams(StreamKind::keep_alive);
    }
    loop.advance(100ms);
    ASSERT_GT(leases->deadline(), loop.now() + 6s);
  }
}

TEST_F(EtcdKeepaliveAuthTest, TokenThatComesLateIsUsedAtOnce) {
  key();
  to_next_beat();
  loop.advance(10ms);
  etcd.expire_tokens();
  wire.fate = [](const FakeAsked& asked) {
    return asked.call == Call::authenticate ? FakeFate{.there = 100ms, .back = 850ms} : FakeFate{};
  };
  to_next_beat();
  EXPECT_TRUE(renewed_within(980ms, 11s));
}

// The endpoint falls silent while a new token is needed. The client sends the authentication and
// the keepalive to another endpoint before the lease expires.
TEST_F(EtcdKeepaliveAuthTest, AuthenticationMovesWithTheEndpoint) {
  const auto id = key();
  to_next_beat();
  loop.advance(10ms);
  etcd.expire_tokens();
  loop.step([&] { link->forget_token(link->token()); });
  wire.break_streams(StreamKind::keep_alive);
  wire.silence(0);
  EXPECT_TRUE(renewed_within(9s, 11s));
  EXPECT_NE(link->current(), 0u);
  EXPECT_TRUE(etcd.alive(id));
}

// As above, but earlier timeouts have raised the time limit of a call. One authentication may now
// take longer than the lease lives.
TEST_F(EtcdKeepaliveAuthTest, AuthenticationThatHangsIsAskedForElsewhereInTime) {
  const auto id = key();
  to_next_beat();
  loop.advance(10ms);
  for (int n = 0; n < 4; ++n) {
    loop.step([&] { link->failed(link->current(), {4, "Deadline Exceeded"}, loop.now()); });
    loop.advance(1ms);
  }
  const auto slow = link->current();
  etcd.expire_tokens();
  loop.step([&] { link->forget_token(link->token()); });
  wire.silence(slow);
  loop.step([&] { link->with_token([] {}); });
  wire.break_streams(StreamKind::keep_alive);
  EXPECT_TRUE(renewed_within(9s, 11s));
  EXPECT_NE(link->current(), slow);
  EXPECT_TRUE(etcd.alive(id));
}

TEST_F(EtcdKeepaliveAuthTest, PasswordThatIsNoLongerGoodIsTriedWithPauses) {
  key();
  to_next_beat();
  loop.advance(10ms);
  const Time deadline = leases->deadline();
  wire.fate = [](const FakeAsked& asked) {
    return asked.call == Call::authenticate ? refused(3, "etcdserver: authentication failed")
                                            : FakeFate{};
  };
  etcd.expire_tokens();
  wire.take_log();
  loop.advance(8s);
  EXPECT_EQ(leases->deadline(), deadline) << "not renewed, and not given up either";
  EXPECT_TRUE(lost.empty());
  EXPECT_GT(wire.count(Call::authenticate), 2u);
  EXPECT_LT(wire.count(Call::authenticate), 40u);
  EXPECT_LT(etcd.refused_keepalives, 40);
  wire.fate = nullptr;  // the password is valid again in time
  EXPECT_TRUE(renewed_within(2s, 10s));
}

// The token is valid, but the servers still refuse the keepalives.
TEST_F(EtcdKeepaliveAuthTest, RefusalThatStaysDoesNotAuthenticateAgainAndAgain) {
  key();
  to_next_beat();
  loop.advance(10ms);
  wire.take_log();
  wire.swallow = [](std::size_t, StreamKind flow, const Message&) {
    return flow == StreamKind::keep_alive;
  };
  for (int n = 0; n < 70; ++n) {
    wire.break_streams(StreamKind::keep_alive, {7, "etcdserver: permission denied"});
    loop.advance(100ms);
  }
  EXPECT_LE(wire.count(Call::authenticate), 1u);
}

// The client has requested a token, and the answer takes 500 ms.
class EtcdKeepaliveTokenMissingTest : public EtcdKeepaliveAuthTest {
 protected:
  EtcdKeepaliveTokenMissingTest() {
    id = key();
    to_next_beat();
    loop.advance(10ms);
    wire.fate = [](const FakeAsked& asked) {
      return asked.call == Call::authenticate ? FakeFate{.back = 500ms} : FakeFate{};
    };
    etcd.expire_tokens();
    to_next_beat();
    loop.advance(100ms);
    EXPECT_TRUE(link->lacks_token());
    EXPECT_EQ(etcd.refused_keepalives, 1);
  }
  std::int64_t id = 0;
};

TEST_F(EtcdKeepaliveTokenMissingTest, MayBeDestroyed) {
  loop.step([&] { leases.reset(); });
  const auto sent = wire.sent(StreamKind::keep_alive);
  loop.advance(30s);
  EXPECT_EQ(wire.sent(StreamKind::keep_alive), sent);
}

TEST_F(EtcdKeepaliveTokenMissingTest, MayBeClosed) {
  bool done = false;
  loop.step([&] { leases->revoke_all([&](const Result<Done>& all) { done = all.has_value(); }); });
  const auto sent = wire.sent(StreamKind::keep_alive);
  loop.advance(10s);
  EXPECT_TRUE(done);
  EXPECT_FALSE(etcd.alive(id));
  EXPECT_EQ(wire.sent(StreamKind::keep_alive), sent);
}

}  // namespace
}  // namespace baton::etcd
