// Watches of single keys on shared streams.
#include "fake_etcd_watches.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::etcd {
namespace {

using namespace std::chrono_literals;

class EtcdWatchesTest : public EtcdWatchesFixture {
 protected:
  const etcdpb::WatchCreateRequest& last_create() {
    log = wire.take_stream_log();
    return static_cast<const etcdpb::WatchRequest&>(*log.back()).create_request();
  }

  std::vector<std::shared_ptr<Message>> log;
};

TEST_F(EtcdWatchesTest, TellsOfTheDeletionWhereAndWhen) {
  const auto heard = watch_new("k");
  pass();
  EXPECT_TRUE(heard->quiet());
  etcd.remove("k");
  pass();
  ASSERT_TRUE(heard->gone());
  EXPECT_TRUE(heard->news[0].pinned);
  EXPECT_EQ(heard->news[0].revision, etcd.revision());
  EXPECT_EQ(heard->news[0].endpoint, 0u);
  EXPECT_EQ(watches->size(), 0u);
}

TEST_F(EtcdWatchesTest, BeginsAtThePresentAndAsksForDeletionsAlone) {
  watch_new("k");
  const auto& create = last_create();
  EXPECT_EQ(create.start_revision(), 0);
  ASSERT_EQ(create.filters_size(), 1);
  EXPECT_EQ(create.filters(0), etcdpb::WatchCreateRequest::NOPUT);
}

TEST_F(EtcdWatchesTest, NothingHappenedSinceSoNothingIsRead) {
  watch_new("k");
  pass();
  EXPECT_EQ(wire.count(Call::range), 0u);
}

TEST_F(EtcdWatchesTest, SomethingHappenedSoOneLookAtTheRevisionOfTheBeginning) {
  const auto created = etcd.put("k");
  etcd.put("other");
  const auto heard = watch("k", created, created);
  pass();
  ASSERT_EQ(wire.count(Call::range), 1u);
  const auto asked = wire.log().back();
  EXPECT_EQ(asked.as<etcdpb::RangeRequest>().revision(), etcd.revision());
  EXPECT_TRUE(asked.as<etcdpb::RangeRequest>().serializable());
  EXPECT_EQ(asked.endpoint, 0u);
  EXPECT_TRUE(heard->quiet());
  etcd.remove("k");
  pass();
  EXPECT_TRUE(heard->gone());
}

TEST_F(EtcdWatchesTest, DeletionBetweenTheReadingAndTheBeginningIsFound) {
  const auto created = etcd.put("k");
  etcd.remove("k");
  const auto heard = watch("k", created, created);
  pass();
  ASSERT_TRUE(heard->gone());
  EXPECT_TRUE(heard->news[0].pinned);
  EXPECT_EQ(heard->news[0].revision, etcd.revision());
}

TEST_F(EtcdWatchesTest, KeyThatWasCreatedAnewIsGone) {
  const auto created = etcd.put("k");
  etcd.remove("k");
  etcd.put("k");
  EXPECT_EQ(watch("k", created, created)->news.size(), 0u);
  const auto heard = watch("k", created, created);
  pass();
  EXPECT_TRUE(heard->gone());
}

TEST_F(EtcdWatchesTest, LookThatCannotBeServedIsAskedOfTheCluster) {
  for (const char* why : {"etcdserver: mvcc: required revision has been compacted",
                          "etcdserver: mvcc: required revision is a future revision"}) {
    wire.take_log();
    const auto created = etcd.put("k");
    etcd.put("other");
    wire.fate = [why](const FakeAsked& asked) {
      const bool pinned =
          asked.call == Call::range && asked.as<etcdpb::RangeRequest>().serializable();
      return pinned ? refused(11, why) : FakeFate{};
    };
    const auto heard = watch("k", created, created);
    pass();
    ASSERT_EQ(wire.count(Call::range), 2u);
    EXPECT_FALSE(wire.log().back().as<etcdpb::RangeRequest>().serializable());
    EXPECT_TRUE(heard->quiet());
    etcd.remove("k");
    pass();
    EXPECT_TRUE(heard->gone());
  }
}

TEST_F(EtcdWatchesTest, LookThatNobodyAnswersIsNoDeletion) {
  const auto created = etcd.put("k");
  etcd.put("other");
  wire.fate = [](const FakeAsked&) { return lost_request(); };
  const auto heard = watch("k", created, created);
  pass(20s);
  for (const auto& news : heard->news) EXPECT_FALSE(news.gone || news.pinned);
  if (!heard->quiet()) return;  // then the waiter looks by itself
  wire.heal();
  pass(10s);
  etcd.remove("k");
  pass();
  EXPECT_TRUE(heard->gone());
}

TEST_F(EtcdWatchesTest, DeletionOfAnEarlierKeyOfThatNameIsNotMeant) {
  const auto first = etcd.put("k");
  etcd.remove("k");
  const auto again = etcd.put("k");
  const auto heard = watch("k", again, first, true);
  pass();
  EXPECT_TRUE(heard->quiet());
  etcd.remove("k");
  pass();
  EXPECT_TRUE(heard->gone());
}

TEST_F(EtcdWatchesTest, OwnKeysBeginWhereTheyAreKnownAndNeedNoLook) {
  const auto created = etcd.put("k");
  etcd.remove("k");
  const auto heard = watch("k", created, created, true);
  EXPECT_EQ(last_create().start_revision(), created + 1);
  pass();
  EXPECT_TRUE(heard->gone());
  EXPECT_EQ(wire.count(Call::range), 0u);
}

TEST_F(EtcdWatchesTest, DelayedOnesThatAreNotWantedAnyMoreCostNothing) {
  const auto created = etcd.put("k");
  const auto heard = watch("k", created, created, true, 100ms);
  pass(99ms);
  loop.step([&] { watches->unwatch(heard->id); });
  pass(1s);
  EXPECT_EQ(wire.sent(StreamKind::watch), 0u);
  EXPECT_EQ(watches->size(), 0u);
}

TEST_F(EtcdWatchesTest, DelayedOnesBeginInTime) {
  const auto created = etcd.put("k");
  const auto heard = watch("k", created, created, true, 100ms);
  etcd.remove("k");
  pass(99ms);
  EXPECT_TRUE(heard->quiet());
  pass(10ms);
  EXPECT_TRUE(heard->gone());
}

// ---- sharing

TEST_F(EtcdWatchesTest, WatchersOfOneKeyShare) {
  const auto first = watch_new("k");
  const auto second = watch("k", etcd.revision(), etcd.revision());
  EXPECT_EQ(wire.sent(StreamKind::watch), 1u);
  pass();
  etcd.remove("k");
  pass();
  EXPECT_TRUE(first->gone());
  EXPECT_TRUE(second->gone());
}

TEST_F(EtcdWatchesTest, OneThatLeavesDoesNotTakeTheOthersAlong) {
  const auto first = watch_new("k");
  const auto second = watch("k", etcd.revision(), etcd.revision());
  pass();
  loop.step([&] { watches->unwatch(first->id); });
  etcd.remove("k");
  pass();
  EXPECT_TRUE(first->quiet());
  EXPECT_TRUE(second->gone());
}

TEST_F(EtcdWatchesTest, WhoCannotWaitBeginsADelayedWatch) {
  const auto created = etcd.put("k");
  const auto own = watch("k", created, created, true, 100ms);
  const auto other = watch("k", created, created);
  pass();
  etcd.remove("k");
  pass();
  EXPECT_TRUE(own->gone());
  EXPECT_TRUE(other->gone());
}

TEST_F(EtcdWatchesTest, SameKeyCreatedAnewMeansThatTheOldOneIsGone) {
  const auto old = watch_new("k");
  pass();
  wire.silence(0);
  etcd.remove("k");
  const auto created = etcd.put("k");
  const auto heard = watch("k", created, created);
  EXPECT_TRUE(old->gone());
  wire.silence(0, false);
  pass();
  EXPECT_TRUE(heard->quiet());
  etcd.remove("k");
  pass();
  EXPECT_TRUE(heard->gone());
}

TEST_F(EtcdWatchesTest, UnwatchMeansNoEvent) {
  const auto heard = watch_new("k");
  pass();
  etcd.remove("k");
  loop.step([&] { watches->unwatch(heard->id); });
  pass();
  EXPECT_TRUE(heard->quiet());
  EXPECT_EQ(etcd.watchers(), 0u);
  loop.step([&] { watches->unwatch(heard->id); });
  loop.step([&] { watches->unwatch(WatchId::none); });
}

TEST_F(EtcdWatchesTest, UnwatchInTheSameStepAsTheEventMeansNoEvent) {
  const auto created = etcd.put("k");
  const auto second = std::make_shared<Heard>();
  loop.step([&] {
    watches->watch({"k", created, created},
                   [&, second](const WatchNews&) { watches->unwatch(second->id); });
    second->id = watches->watch({"k", created, created},
                                [second](const WatchNews& news) { second->news.push_back(news); });
  });
  pass();
  etcd.remove("k");
  pass();
  EXPECT_TRUE(second->quiet());
}

TEST_F(EtcdWatchesTest, OurOwnRemovalIsToldBeforeTheStreamTells) {
  const auto heard = watch_new("k");
  pass();
  const auto created = etcd.find("k")->create_revision();
  etcd.remove("k");
  loop.step([&] { watches->deleted("k", created, etcd.revision(), 2); });
  ASSERT_TRUE(heard->gone());
  EXPECT_EQ(heard->news[0].endpoint, 2u);
  EXPECT_TRUE(heard->news[0].pinned);
  pass();
  EXPECT_EQ(heard->news.size(), 1u);
}

TEST_F(EtcdWatchesTest, MoreThanAThousandUseASecondStream) {
  std::vector<HeardPtr> all;
  for (int n = 0; n < 1'001; ++n) all.push_back(watch_new("k" + std::to_string(n)));
  pass();
  EXPECT_EQ(watches->streams(), 2u);
  EXPECT_EQ(wire.streams(StreamKind::watch), 2u);
  for (const int n : {0, 999, 1'000}) {
    etcd.remove("k" + std::to_string(n));
    pass();
    EXPECT_TRUE(all[static_cast<std::size_t>(n)]->gone());
  }
}

// ---- puts

TEST_F(EtcdWatchesTest, EveryPutIsTold) {
  std::vector<std::int64_t> puts;
  const auto before = etcd.revision();
  const auto first = etcd.put("k");
  WatchId id{};
  loop.step([&] {
    id = watches->watch_puts("k", before, [&](std::int64_t created) { puts.push_back(created); });
  });
  pass();
  etcd.remove("k");
  const auto second = etcd.put("k");
  pass();
  EXPECT_EQ(puts, (std::vector{first, second}));
  wire.break_streams();
  etcd.remove("k");
  const auto third = etcd.put("k");
  pass(1s);
  EXPECT_EQ(puts, (std::vector{first, second, third})) << "none twice, none missed";
  loop.step([&] { watches->unwatch(id); });
  etcd.put("k");
  pass();
  EXPECT_EQ(puts.size(), 3u);
}

TEST_F(EtcdWatchesTest, PutsAreWatchedForFromNowOnWhenTheirPastIsCompacted) {
  int puts = 0;
  const auto before = etcd.revision();
  for (int n = 0; n < 5; ++n) etcd.put("other");
  etcd.compact(etcd.revision());
  loop.step([&] { watches->watch_puts("k", before, [&](std::int64_t) { ++puts; }); });
  pass();
  etcd.put("k");
  pass();
  EXPECT_EQ(puts, 1);
}

}  // namespace
}  // namespace baton::etcd
