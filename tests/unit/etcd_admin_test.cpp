// The operations for operators on the etcd store: inspect, list, evict.
#include "etcd/path.h"
#include "fake_etcd_client.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace baton::etcd {
namespace {

using namespace std::chrono_literals;

class EtcdAdminTest : public ::testing::Test {
 protected:
  // Loses the first answer of each kind of call.
  void lose_first_answers() {
    ann.wire.fate = [lost = std::set<Call>()](const FakeAsked& asked) mutable {
      return lost.insert(asked.call).second ? lost_answer() : FakeFate{};
    };
  }
  ManualLoop loop;
  FakeEtcd etcd{loop};
  FakeEtcdClient ann{etcd};
};

TEST_F(EtcdAdminTest, InspectShowsTheQueueInItsOrder) {
  FakeEtcdClient bob(etcd);
  ann.settled(ann.join(1));
  etcd.put("/app/job/foreign", 0, "garbage");
  etcd.put("/app/job/below/1-1");
  bob.settled(bob.join(1));
  const auto snapshot = ann.settled(ann.inspect())->value();
  EXPECT_EQ(snapshot.name, "job");
  ASSERT_EQ(snapshot.entries.size(), 3u);
  EXPECT_EQ(snapshot.entries[0].label, "the label");
  EXPECT_EQ(snapshot.entries[1].label, "unknown");
  EXPECT_EQ(snapshot.entries[1].id, "foreign@" + std::to_string(snapshot.entries[1].token));
  EXPECT_LT(snapshot.entries[0].token, snapshot.entries[1].token);
  EXPECT_LT(snapshot.entries[1].token, snapshot.entries[2].token);
}

TEST_F(EtcdAdminTest, ListFindsLocksBelowThePrefix) {
  for (const char* key : {"/app/a/1", "/app/a/b/1", "/app/ab/1", "/app/c/1", "/app/alone",
                          "/apple/a/1", "/other/1"}) {
    etcd.put(key);
  }
  EXPECT_EQ(ann.settled(ann.list())->value(), (Texts{"a", "a/b", "ab", "c"}));
  EXPECT_EQ(ann.settled(ann.list("a"))->value(), (Texts{"a", "a/b", "ab"}));
  EXPECT_EQ(ann.settled(ann.list("a/"))->value(), Texts{"a/b"});
  EXPECT_EQ(ann.settled(ann.list("none"))->value(), Texts{});
}

TEST_F(EtcdAdminTest, ListWithoutARootFindsAll) {
  FakeEtcdClient bob(etcd, {.root = ""});
  etcd.put("a/1");
  etcd.put("z/y/1");
  bob.settled(bob.join(1));
  EXPECT_EQ(bob.settled(bob.list())->value(), (Texts{"a", "job", "z/y"}));
}

TEST_F(EtcdAdminTest, ListReadsPagesOfOneRevision) {
  for (int n = 0; n < 5'001; ++n) etcd.put("/app/lock" + std::to_string(n) + "/1");
  const auto listed = ann.list();
  ann.pass(2ms);
  etcd.put("/app/zzz/1");  // between the pages
  EXPECT_EQ(ann.settled(listed)->value().size(), 5'001u);
  EXPECT_EQ(ann.wire.count(Call::range), 2u);
}

TEST_F(EtcdAdminTest, ListBeginsAgainWhenItsRevisionIsCompacted) {
  for (int n = 0; n < 5'001; ++n) etcd.put("/app/lock" + std::to_string(n) + "/1");
  const auto listed = ann.list();
  ann.pass(2ms);
  etcd.put("/app/zzz/1");
  etcd.compact(etcd.revision());
  EXPECT_EQ(ann.settled(listed)->value().size(), 5'002u);
}

// All further pages are read at the revision of the first page.
TEST_F(EtcdAdminTest, ListReadsAllPagesAtOneRevision) {
  for (int n = 0; n < 15'010; ++n) etcd.put("/app/lock" + std::to_string(n) + "/1");
  const auto revision = etcd.revision();
  std::vector<std::int64_t> revisions;
  ann.wire.fate = [&](const FakeAsked& asked) {
    if (asked.call == Call::range) {
      revisions.push_back(asked.as<etcdpb::RangeRequest>().revision());
      etcd.remove("/app/lock9999/1");  // in the last page
      if (revisions.size() > 1) etcd.put("/app/new" + std::to_string(revisions.size()) + "/1");
    }
    return FakeFate{};
  };
  etcd.put("/app/lock9999/1");
  const auto listed = ann.settled(ann.list());
  ASSERT_TRUE(listed->ok());
  EXPECT_EQ(listed->value().size(), 15'009u);
  EXPECT_EQ(revisions, (std::vector<std::int64_t>{0, revision + 2, revision + 2, revision + 2}));
}

// The list is retried as long as its caller waits, and not longer.
TEST_F(EtcdAdminTest, ListWhoseRevisionIsCompactedAgainAndAgainEnds) {
  for (int n = 0; n < 5'001; ++n) etcd.put("/app/lock" + std::to_string(n) + "/1");
  ann.wire.fate = [&](const FakeAsked& asked) {
    if (asked.call == Call::range && asked.as<etcdpb::RangeRequest>().revision() != 0) {
      etcd.put("x");
      etcd.compact(etcd.revision());
    }
    return FakeFate{};
  };
  const auto listed = ann.list();
  ann.pass(59s);
  EXPECT_FALSE(listed->got);
  ann.pass(2s);
  ASSERT_TRUE(listed->got);
  EXPECT_EQ(listed->error().errc(), Errc::connection_failed);
  EXPECT_LT(ann.wire.count(Call::range), 2'000u);
}

// A key whose name equals the prefix of a lock is not an entry. The keys of locks below this lock
// are not its entries either.
TEST_F(EtcdAdminTest, EvictOfAnIdThatCannotBeAnEntryRemovesNothing) {
  const auto prefix = etcd.put("/app/job/");
  const auto below = etcd.put("/app/job/below/1-1");
  etcd.put("/app/job/~token_base");  // the token base of the root /app/job
  for (const std::string& id :
       {std::string(), std::string("/"), std::string("below/1-1"), std::string("~token_base"),
        "below/1-1@" + std::to_string(below), "/@" + std::to_string(prefix),
        "x/@" + std::to_string(prefix), std::string("below/")}) {
    EXPECT_FALSE(ann.settled(ann.evict(id))->value()) << id;
    EXPECT_EQ(ann.keys().size(), 3u) << id;
  }
  EXPECT_EQ(ann.wire.count(Call::txn), 0u);
}

TEST_F(EtcdAdminTest, EvictRemovesExactlyTheNamedEntry) {
  const auto created = etcd.put("/app/job/one");
  etcd.put("/app/job/two");
  EXPECT_FALSE(ann.settled(ann.evict("one@" + std::to_string(created + 1)))->value());
  EXPECT_FALSE(ann.settled(ann.evict("three"))->value());
  EXPECT_FALSE(ann.settled(ann.evict(""))->value());
  EXPECT_FALSE(ann.settled(ann.evict("below/1"))->value());
  EXPECT_EQ(ann.keys().size(), 2u);
  EXPECT_TRUE(ann.settled(ann.evict("one@" + std::to_string(created)))->value());
  EXPECT_TRUE(ann.settled(ann.evict("two"))->value()) << "without a revision: whichever";
  EXPECT_TRUE(ann.keys().empty());
}

TEST_F(EtcdAdminTest, EvictDoesNotTouchAnEntryThatWasCreatedMeanwhile) {
  etcd.put("/app/job/one");
  ann.wire.fate = [](const FakeAsked& asked) {
    return asked.call == Call::txn ? FakeFate{.there = 50ms} : FakeFate{};
  };
  const auto evicted = ann.evict("one");
  ann.pass(20ms);
  etcd.remove("/app/job/one");
  etcd.put("/app/job/one");
  EXPECT_FALSE(ann.settled(evicted)->value());
  EXPECT_EQ(ann.keys().size(), 1u);
}

TEST_F(EtcdAdminTest, LostAnswersAreAskedForAgain) {
  etcd.put("/app/job/one");
  lose_first_answers();
  EXPECT_TRUE(ann.settled(ann.evict("one"))->value()) << "gone, and most likely by us";
  lose_first_answers();
  EXPECT_TRUE(ann.settled(ann.inspect())->ok());
  lose_first_answers();
  EXPECT_TRUE(ann.settled(ann.list())->ok());
}

// Requests without an answer end when their caller has left. They are not retried any longer, and
// an eviction is not sent late.
TEST_F(EtcdAdminTest, QuestionsThatNobodyAnswersEnd) {
  etcd.put("/app/job/one");
  ann.wire.fate = [](const FakeAsked& asked) {
    return asked.call == Call::range ? lost_request() : FakeFate{};
  };
  const auto inspected = ann.inspect();
  const auto listed = ann.list();
  const auto evicted = ann.evict("one");
  ann.pass(55s);
  EXPECT_FALSE(inspected->got || listed->got || evicted->got);
  ann.pass(20s);
  ASSERT_TRUE(inspected->got && listed->got && evicted->got);
  EXPECT_EQ(inspected->error().errc(), Errc::connection_failed);
  EXPECT_EQ(listed->error().errc(), Errc::connection_failed);
  EXPECT_EQ(evicted->error().errc(), Errc::connection_failed);
  ann.wire.take_log();
  ann.wire.fate = nullptr;
  ann.pass(20s);
  EXPECT_EQ(ann.wire.count(Call::range), 0u);
  EXPECT_EQ(ann.keys().size(), 1u);
}

// The caller has received an error, which means that nothing was removed. It acts on that, so the
// entry must stay.
TEST_F(EtcdAdminTest, EvictionIsNotSentAfterItsCallerWasTold) {
  etcd.put("/app/job/one");
  ann.wire.fate = [](const FakeAsked& asked) {
    return asked.call == Call::range ? FakeFate{.back = 1500ms} : FakeFate{};
  };
  ann.wanted_for(1s);
  const auto late = ann.evict("one");
  ann.pass(10s);
  EXPECT_EQ(ann.wire.count(Call::txn), 0u);
  EXPECT_EQ(ann.keys().size(), 1u);
  ann.wanted_for(2s);
  EXPECT_TRUE(ann.settled(ann.evict("one"))->value());
  EXPECT_EQ(ann.keys().size(), 0u);
}

// Reads, including verify(), end with their callers. Otherwise a client would retry all reads that
// were started during a long outage.
TEST_F(EtcdAdminTest, ReadingsEndWithTheirCallers) {
  ann.settled(ann.join(1));
  ann.wire.fate = [](const FakeAsked& asked) {
    return asked.call == Call::range ? refused(14, "connection reset") : FakeFate{};
  };
  const std::vector<std::function<void()>> questions{[&] { ann.verify(1); }, [&] { ann.inspect(); },
                                                     [&] { ann.list(); }};
  for (const auto& ask : questions) {
    ann.wanted_for(1s);
    ask();
    ann.pass(900ms);
    EXPECT_GE(ann.wire.count(Call::range), 2u) << "a caller that waits: retry";
    ann.pass(1s);
    ann.wire.take_log();
    ann.pass(5s);
    EXPECT_EQ(ann.wire.count(Call::range), 0u) << "its caller has left";
  }
}

TEST_F(EtcdAdminTest, RefusalsAreTold) {
  ann.wire.fate = [](const FakeAsked&) { return refused(7, "etcdserver: permission denied"); };
  EXPECT_EQ(ann.settled(ann.inspect())->error().errc(), Errc::permission_denied);
  EXPECT_EQ(ann.settled(ann.list())->error().errc(), Errc::permission_denied);
  EXPECT_EQ(ann.settled(ann.evict("one"))->error().errc(), Errc::permission_denied);
}

}  // namespace
}  // namespace baton::etcd
