// The operations for operators on the ZooKeeper store.
#include "fake_zk_client.h"

#include <gtest/gtest.h>
#include <zookeeper/zookeeper.h>

#include <limits>
#include <string>

namespace baton::zk {
namespace {

class ZkAdminTest : public ::testing::Test {
 protected:
  ManualLoop loop;
  FakeZk zk{loop};
  FakeZkClient ann{zk};
};

TEST_F(ZkAdminTest, InspectShowsTheLineInOrderBehindASync) {
  ann.settled(ann.join(1));
  const std::string curator = "_c_0b5c1a6e-3f0a-4a3a-8a6e-9f3f6f8f2b11-lock-0000000001";
  zk.put("/app/job/" + curator, FakeNode::Kind::entry, "10.0.0.7", 77);
  zk.put("/app/job/nested");
  ann.settled(ann.join(2));
  ann.wire().take_log();
  const auto asked = ann.settled(ann.inspect());
  EXPECT_EQ(text(ann.wire().take_log().at(0)), "sync /app/job");
  const auto& entries = asked->value().entries;
  EXPECT_EQ(asked->value().name, "job");
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_EQ(entries[0].id, entry_prefix(ann.id(1)) + "0000000000");
  EXPECT_EQ(entries[0].label, "label of AAAAAAAA");
  EXPECT_EQ(entries[0].token, zk.find("/app/job/" + entries[0].id)->created_at);
  EXPECT_EQ(entries[0].since.time_since_epoch(),
            std::chrono::milliseconds(zk.find("/app/job/" + entries[0].id)->ctime_ms));
  EXPECT_EQ(entries[1].id, curator);
  EXPECT_EQ(entries[1].label, "unknown");
  EXPECT_EQ(entries[1].since, std::chrono::system_clock::time_point());
  EXPECT_EQ(entries[1].token, zk.find("/app/job/" + curator)->created_at);
  EXPECT_EQ(entries[2].id, entry_prefix(ann.id(2)) + "0000000003") << "nested had number 2";
}

TEST_F(ZkAdminTest, TimesThatNoClockReachesAreCutOff) {
  ann.settled(ann.join(1));
  const auto path = ann.entries().at(0);
  zk.set_ctime(path, std::numeric_limits<std::int64_t>::max());
  EXPECT_GT(ann.settled(ann.inspect())->value().entries.at(0).since.time_since_epoch().count(), 0);
  zk.set_ctime(path, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(ann.settled(ann.inspect())->value().entries.at(0).since.time_since_epoch().count(), 0);
}

TEST_F(ZkAdminTest, InspectOfAnUnusedLockIsEmpty) {
  EXPECT_TRUE(ann.settled(ann.inspect())->value().entries.empty());
  zk.put("/app/job");
  EXPECT_TRUE(ann.settled(ann.inspect())->value().entries.empty());
}

TEST_F(ZkAdminTest, EntryThatGoesWhileItIsReadIsLeftOut) {
  for (std::uint64_t nonce = 1; nonce <= 3; ++nonce) ann.settled(ann.join(nonce));
  const auto asked = ann.inspect();
  ann.wire().exchange();  // the list of the entries
  zk.remove(ann.entries().at(1));
  ann.settled(asked);
  EXPECT_EQ(asked->value().entries.size(), 2u);
}

TEST_F(ZkAdminTest, LongLineIsReadWhole) {
  for (std::uint64_t nonce = 1; nonce <= 300; ++nonce) ann.join(nonce);
  ann.wire().settle();
  const auto asked = ann.settled(ann.inspect());
  ASSERT_EQ(asked->value().entries.size(), 300u);
  for (std::size_t i = 1; i < 300; ++i) {
    EXPECT_LT(asked->value().entries[i - 1].token, asked->value().entries[i].token);
  }
}

TEST_F(ZkAdminTest, InspectSaysIfItMayNotRead) {
  ann.settled(ann.join(1));
  zk.refuse = [](const Request& r) {
    return r.kind == Request::Kind::get ? int{ZNOAUTH} : int{ZOK};
  };
  EXPECT_EQ(ann.settled(ann.inspect())->error().errc(), Errc::permission_denied);
}

TEST_F(ZkAdminTest, ListNamesTheLocksThatHaveAnEntry) {
  for (const char* lock : {"a", "a/b", "b/c/d", "z"}) {
    static std::uint64_t nonce = 0;
    ann.settled(ann.join(++nonce, lock));
  }
  ann.settled(ann.withdraw(4, "z"));
  zk.put("/app/config/x");
  zk.put("/other/job/x-lock-0000000000");
  zk.put("/app/not a name/x-lock-0000000000");
  EXPECT_EQ(ann.settled(ann.list())->value(), (Texts{"a", "a/b", "b/c/d"}));
  EXPECT_EQ(ann.settled(ann.list("a/"))->value(), Texts{"a/b"});
  EXPECT_EQ(ann.settled(ann.list("b/c"))->value(), Texts{"b/c/d"});
  EXPECT_EQ(ann.settled(ann.list("q"))->value(), Texts{});
}

TEST_F(ZkAdminTest, ListWithoutARootLeavesTheServersOwnNodesAlone) {
  FakeZkClient bob(zk, {.root = "", .client_id = "BBBBBBBB"});
  zk.put("/zookeeper/quota/x-lock-0000000000");
  bob.settled(bob.join(1, "job"));
  EXPECT_EQ(bob.settled(bob.list())->value(), Texts{"job"});
}

TEST_F(ZkAdminTest, ListOfAnEmptyStoreIsEmpty) {
  EXPECT_EQ(ann.settled(ann.list())->value(), Texts{});
}

TEST_F(ZkAdminTest, EvictRemovesExactlyThatEntry) {
  ann.settled(ann.join(1));
  ann.settled(ann.join(2));
  const std::string first = entry_prefix(ann.id(1)) + "0000000000";
  EXPECT_TRUE(ann.settled(ann.evict(first))->value());
  EXPECT_EQ(ann.entries().size(), 1u);
  EXPECT_FALSE(ann.settled(ann.evict(first))->value()) << "only once";
  EXPECT_FALSE(ann.settled(ann.evict(first, "other"))->value());
}

TEST_F(ZkAdminTest, EvictTouchesNothingThatIsNoEntry) {
  zk.put("/app/job/nested");
  zk.put("/app/job/a/x-lock-0000000000");
  const std::uint64_t before = zk.zxid();
  for (const char* id : {"nested", "a/x-lock-0000000000", "../job/nested", "", "x-lock-"}) {
    EXPECT_FALSE(ann.settled(ann.evict(id))->value()) << id;
  }
  EXPECT_NE(zk.find("/app/job/nested"), nullptr);
  EXPECT_NE(zk.find("/app/job/a/x-lock-0000000000"), nullptr);
  EXPECT_EQ(zk.zxid(), before) << "no write was tried";
}

TEST_F(ZkAdminTest, EvictSaysIfItMayNot) {
  ann.settled(ann.join(1));
  zk.refuse = [](const Request& r) {
    return r.kind == Request::Kind::remove ? int{ZNOAUTH} : int{ZOK};
  };
  const auto asked = ann.settled(ann.evict(entry_prefix(ann.id(1)) + "0000000000"));
  EXPECT_EQ(asked->error().errc(), Errc::permission_denied);
}

// A busy server refuses requests. An immediate retry would add to its load.
TEST_F(ZkAdminTest, ThrottledQuestionsAreAskedAgainAfterAWhile) {
  ann.settled(ann.join(1));
  int refused = 0;
  zk.refuse = [&](const Request& request) {
    const bool beat = request.path == kMissingNode || request.path == "/";
    return beat || refused >= 12 ? int{ZOK} : (++refused, int{ZTHROTTLEDOP});
  };
  const auto seen = ann.inspect();
  const auto listed = ann.list();
  const auto evicted = ann.evict(entry_prefix(ann.id(1)) + "0000000000");
  ann.wire().settle();
  EXPECT_FALSE(seen->got || listed->got || evicted->got);
  for (int n = 0; n < 50; ++n) {
    loop.advance(std::chrono::milliseconds(100));
    ann.wire().settle();
  }
  EXPECT_TRUE(seen->ok());
  EXPECT_TRUE(listed->ok());
  EXPECT_TRUE(evicted->ok());
}

}  // namespace
}  // namespace baton::zk
