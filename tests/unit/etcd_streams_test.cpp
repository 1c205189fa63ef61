// Watches whose streams break, are refused, or fall silent.
#include "fake_etcd_watches.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::etcd {
namespace {

using namespace std::chrono_literals;

class EtcdStreamsTest : public EtcdWatchesFixture {
 protected:
  static bool is_create(const Message& message) {
    return static_cast<const etcdpb::WatchRequest&>(message).has_create_request();
  }
};

TEST_F(EtcdStreamsTest, BrokenStreamGoesOnWhereItWasWithoutLoss) {
  const auto kept = watch_new("kept");
  const auto gone = watch_new("gone");
  pass();
  wire.take_log();
  wire.break_streams();
  etcd.remove("gone");
  pass();
  ASSERT_TRUE(gone->gone()) << "deleted in the gap";
  EXPECT_FALSE(gone->news[0].pinned) << "after a gap the cluster is asked";
  EXPECT_TRUE(kept->quiet());
  EXPECT_EQ(wire.count(Call::range), 0u);
  etcd.remove("kept");
  pass();
  EXPECT_TRUE(kept->gone());
}

TEST_F(EtcdStreamsTest, EndpointThatIsLeftTakesItsWatchesElsewhere) {
  const auto heard = watch_new("k");
  pass();
  loop.step([&] { link->silent(0, "for a test"); });
  pass();
  EXPECT_EQ(wire.where(StreamKind::watch), 1u);
  etcd.remove("k");
  pass();
  EXPECT_TRUE(heard->gone());
}

TEST_F(EtcdStreamsTest, MemberThatLagsTellsLater) {
  etcd.lag(1);
  const auto heard = watch_new("k");
  pass();
  wire.take_down(0);
  etcd.remove("k");
  pass(1s);
  EXPECT_EQ(wire.where(StreamKind::watch), 1u);
  EXPECT_TRUE(heard->quiet()) << "it does not know yet";
  loop.step([&] { etcd.catch_up(); });
  pass();
  EXPECT_TRUE(heard->gone());
}

TEST_F(EtcdStreamsTest, CompactedIsNeverADeletion) {
  const auto heard = watch_new("k");
  pass();
  for (int n = 0; n < 5; ++n) etcd.put("other");
  etcd.compact(etcd.revision());
  wire.break_streams();
  pass(1s);
  ASSERT_EQ(heard->news.size(), 1u);
  EXPECT_FALSE(heard->news[0].gone);
  EXPECT_FALSE(heard->news[0].pinned);
}

// The stream breaks while the look is under way. The answer of the look comes after the next stream
// has started at a later revision. Neither of them covers the changes in between.
TEST_F(EtcdStreamsTest, LookOfAnEarlierStreamProvesNothingForTheNext) {
  const auto created = etcd.put("k");
  etcd.put("other");
  wire.fate = [n = 0](const FakeAsked&) mutable {
    return n++ == 0 ? FakeFate{.back = 200ms} : FakeFate{};
  };
  const auto heard = watch("k", created, created);
  pass(5ms);
  ASSERT_EQ(wire.count(Call::range), 1u);
  wire.break_streams();
  etcd.remove("k");
  pass(1s);
  EXPECT_TRUE(heard->gone());
}

TEST_F(EtcdStreamsTest, LookOfAnEarlierStreamMayComeBeforeTheNextHasBegun) {
  const auto created = etcd.put("k");
  etcd.put("other");
  for (const auto back : {2ms, 3ms, 4ms, 5ms, 6ms, 50ms}) {
    wire.take_log();
    wire.fate = [back, n = 0](const FakeAsked&) mutable {
      return n++ == 0 ? FakeFate{.back = back} : FakeFate{};
    };
    const auto again = etcd.put("k" + std::to_string(back.count()));
    etcd.put("other");
    const auto heard = watch("k" + std::to_string(back.count()), again, again);
    pass(3ms);
    wire.break_streams();
    etcd.remove("k" + std::to_string(back.count()));
    pass(1s);
    EXPECT_TRUE(heard->gone()) << back.count();
  }
  EXPECT_GT(created, 0);
}

// Otherwise the member would read all changes since then, and its writers would wait meanwhile.
TEST_F(EtcdStreamsTest, WatchThatIsFarBehindBeginsAtThePresentAndLooks) {
  for (const int others : {900, 1'100}) {
    SCOPED_TRACE(others);
    const auto stays = watch_new("stays" + std::to_string(others));
    const auto goes = watch_new("goes" + std::to_string(others));
    pass();
    for (int n = 0; n < others; ++n) etcd.put("x");
    // from now on the client knows the current revision
    const auto last = watch_new("new" + std::to_string(others));
    pass();
    wire.take_stream_log();
    wire.break_streams(StreamKind::watch);
    etcd.remove("goes" + std::to_string(others));
    pass(1s);
    std::vector<std::int64_t> starts;
    for (const auto& message : wire.take_stream_log()) {
      if (!is_create(*message)) continue;
      const auto& create = static_cast<const etcdpb::WatchRequest&>(*message).create_request();
      if (create.key() == "stays" + std::to_string(others)) {
        starts.push_back(create.start_revision());
      }
    }
    ASSERT_EQ(starts.size(), 1u);
    EXPECT_EQ(starts[0] == 0, others > 1'000);
    EXPECT_TRUE(goes->gone()) << "whatever happened meanwhile is found";
    EXPECT_TRUE(stays->quiet());
    etcd.remove("stays" + std::to_string(others));
    pass();
    EXPECT_TRUE(stays->gone());
  }
}

// The end of other watches does not give a silent stream more time.
TEST_F(EtcdStreamsTest, GivingUpWatchesDoesNotPutOffThatTheStreamIsSilent) {
  wire.swallow = [](std::size_t endpoint, StreamKind, const Message&) { return endpoint == 0; };
  const auto heard = watch_new("k");
  for (int n = 0; n < 3; ++n) {
    WatchId id = WatchId::none;
    loop.step([&] {
      id = watches->watch({"other" + std::to_string(n), 1, 1}, [](const auto&) {});
    });
    pass(700ms);
    loop.step([&] { watches->unwatch(id); });
  }
  EXPECT_EQ(link->current(), 1u);
  EXPECT_TRUE(heard->quiet());
}

TEST_F(EtcdStreamsTest, MissingAnswerToACreateMovesToAnotherEndpoint) {
  wire.swallow = [](std::size_t endpoint, StreamKind, const Message&) { return endpoint == 0; };
  const auto heard = watch_new("k");
  pass(1'999ms);
  EXPECT_EQ(link->current(), 0u);
  pass(200ms);
  EXPECT_EQ(wire.where(StreamKind::watch), 1u);
  EXPECT_EQ(wire.path(0).renewed, 1);
  etcd.remove("k");
  pass();
  EXPECT_TRUE(heard->gone());
}

// There is only one endpoint. The connection to it is dead, but a new connection works.
TEST_F(EtcdStreamsTest, SilentConnectionToTheOnlyEndpointIsLeft) {
  FakeEtcd alone{loop};
  FakeEtcdWire only{alone};
  ClusterState map;
  LinkListener& listener = *this;
  watches.reset();
  link = std::make_unique<Link>(fake_link_parts(loop, only, map), listener);
  watches = std::make_unique<Watches>(loop, *link);
  const auto created = alone.put("k");
  const auto heard = watch("k", created, created);
  pass();
  only.black_hole(0);
  loop.step([&] { link->silent(0, "no answer to a keepalive"); });
  alone.remove("k");
  pass();
  EXPECT_TRUE(heard->gone());
  watches.reset();
  link.reset();
}

TEST_F(EtcdStreamsTest, EndpointsThatAreAllDownAreTriedWithPauses) {
  const auto heard = watch_new("k");
  pass();
  for (const std::size_t i : {0u, 1u, 2u}) wire.take_down(i);
  const auto before = wire.sent(StreamKind::watch);
  pass(10s);
  EXPECT_LT(wire.sent(StreamKind::watch) - before, 30u);
  etcd.remove("k");
  wire.heal();
  pass(3s);
  EXPECT_TRUE(heard->gone());
}

TEST_F(EtcdStreamsTest, WatchesThatComeWhileThereIsNoStreamBeginWithTheNext) {
  watch_new("first");
  pass();
  for (const std::size_t i : {0u, 1u, 2u}) wire.take_down(i);
  pass(1s);
  const auto heard = watch_new("second");
  wire.heal();
  pass(3s);
  etcd.remove("second");
  pass();
  EXPECT_TRUE(heard->gone());
}

// ---- users

class EtcdWatchUsersTest : public EtcdStreamsTest, public ::testing::WithParamInterface<bool> {
 protected:
  EtcdWatchUsersTest() {
    etcd.require_users();
    etcd.names_refused_watches = GetParam();
    make("ann");
  }
};
INSTANTIATE_TEST_SUITE_P(NamesTheWatch, EtcdWatchUsersTest, ::testing::Bool());

TEST_P(EtcdWatchUsersTest, StreamIsOpenedWithAToken) {
  const auto heard = watch_new("k");
  pass();
  EXPECT_EQ(etcd.authentications, 1);
  etcd.remove("k");
  pass();
  EXPECT_TRUE(heard->gone());
}

TEST_P(EtcdWatchUsersTest, RefusedWatchAuthenticatesAgain) {
  for (const char* why : {"etcdserver: permission denied", "etcdserver: invalid auth token",
                          "etcdserver: user name is empty"}) {
    etcd.refusal = why;
    const auto before = etcd.authentications;
    const std::string name = "old" + std::to_string(before);
    const auto old = watch_new(name);
    pass();
    etcd.expire_tokens();
    const auto heard = watch_new("new" + name);
    pass(500ms);
    EXPECT_EQ(etcd.authentications, std::max(before, 1) + 1) << why;
    EXPECT_TRUE(old->quiet());
    etcd.remove(name);
    etcd.remove("new" + name);
    pass();
    EXPECT_TRUE(old->gone()) << why;
    EXPECT_TRUE(heard->gone()) << why;
    EXPECT_EQ(link->current(), 0u) << "nobody was silent";
  }
}

TEST_P(EtcdWatchUsersTest, WatchThatStaysRefusedIsNotAskedForWithoutPause) {
  watch_new("k");
  pass();
  wire.fate = [](const FakeAsked& asked) {
    return asked.call == Call::authenticate ? refused(3, "etcdserver: authentication failed")
                                            : FakeFate{};
  };
  etcd.expire_tokens();
  const auto before = wire.sent(StreamKind::watch);
  const auto heard = watch_new("refused");
  loop.step([&] { watches->watch_puts("puts", etcd.revision(), [](std::int64_t) {}); });
  pass(10s);
  EXPECT_LT(wire.sent(StreamKind::watch) - before, 100u);
  for (const auto& news : heard->news) EXPECT_FALSE(news.gone);
}

}  // namespace
}  // namespace baton::etcd
