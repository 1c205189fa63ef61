// Withdrawing from a queue of the ZooKeeper store at every stage of a join, and afterwards.
#include "fake_zk_client.h"

#include <gtest/gtest.h>
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <string>

namespace baton::zk {
namespace {

using Kind = Request::Kind;

class ZkWithdrawTest : public ::testing::Test {
 protected:
  ZkWithdrawTest() { zk.put("/app/job"); }
  std::size_t creates() {
    const auto log = ann.wire().take_log();
    return static_cast<std::size_t>(std::count_if(
        log.begin(), log.end(), [](const Request& r) { return r.kind == Kind::create_entry; }));
  }

  ManualLoop loop;
  FakeZk zk{loop};
  FakeZkClient ann{zk};
};

TEST_F(ZkWithdrawTest, ReleaseIsOneRemoval) {
  ann.settled(ann.join(1));
  const std::string entry = ann.entries().at(0);
  ann.wire().take_log();
  const auto gone = ann.withdraw(1);
  EXPECT_EQ(texts(ann.wire().take_log()), Texts{"remove " + entry});
  ann.wire().exchange();
  EXPECT_TRUE(gone->value().found);
  EXPECT_TRUE(ann.entries().empty());
}

TEST_F(ZkWithdrawTest, NoNodeAfterALostAnswerToOurRemovalIsOurs) {
  ann.settled(ann.join(1));
  const auto first = ann.withdraw(1);
  ann.wire().cut_after_requests();
  ASSERT_TRUE(first->got);
  EXPECT_TRUE(transient(first->error()));
  ann.wire().connect();
  EXPECT_TRUE(ann.settled(ann.withdraw(1))->value().found);
  EXPECT_TRUE(ann.entries().empty());
}

TEST_F(ZkWithdrawTest, RemovalThatNeverArrivedIsRepeated) {
  ann.settled(ann.join(1));
  const auto first = ann.withdraw(1);
  ann.wire().cut();
  EXPECT_TRUE(transient(first->error()));
  EXPECT_EQ(ann.entries().size(), 1u);
  ann.wire().connect();
  EXPECT_TRUE(ann.settled(ann.withdraw(1))->value().found);
  EXPECT_TRUE(ann.entries().empty());
}

TEST_F(ZkWithdrawTest, RefusedRemovalSaysSoAndCanBeRepeated) {
  ann.settled(ann.join(1));
  zk.refuse = [](const Request& request) {
    return request.kind == Kind::remove && request.path.starts_with("/app") ? int{ZNOAUTH}
                                                                            : int{ZOK};
  };
  EXPECT_EQ(ann.settled(ann.withdraw(1))->error().errc(), Errc::permission_denied);
  zk.refuse = nullptr;
  EXPECT_TRUE(ann.settled(ann.withdraw(1))->value().found);
  EXPECT_TRUE(ann.entries().empty());
}

// ---- while the create is under way

TEST_F(ZkWithdrawTest, CreateThatWasNotSentNeverIs) {
  ann.wire().cut();
  const auto joined = ann.join(1);
  const auto gone = ann.withdraw(1);
  EXPECT_TRUE(gone->ok()) << "answered without a connection";
  EXPECT_TRUE(ann.entries().empty());
  ann.wire().connect();
  ann.wire().settle();
  EXPECT_EQ(creates(), 0u);
  EXPECT_TRUE(ann.entries().empty());
  ASSERT_TRUE(joined->got) << "whoever asked is told";
  EXPECT_FALSE(joined->ok());
}

TEST_F(ZkWithdrawTest, CreateThatWaitsForRoomNeverIsSent) {
  std::vector<AskedPtr<bool>> peeks;
  for (int i = 0; i < 600; ++i) peeks.push_back(ann.peek("lock" + std::to_string(i)));
  const auto joined = ann.join(1);
  EXPECT_EQ(creates(), 0u);
  EXPECT_TRUE(ann.withdraw(1)->ok());
  ann.wire().settle();
  EXPECT_EQ(creates(), 0u);
  EXPECT_TRUE(joined->got);
}

TEST_F(ZkWithdrawTest, CreateInFlightIsRemovedWhenItIsAnswered) {
  for (const bool at_server : {false, true}) {
    const std::uint64_t nonce = at_server ? 2 : 1;
    ann.join(nonce);
    if (at_server) ann.wire().deliver_request();
    const auto gone = ann.withdraw(nonce);
    EXPECT_FALSE(gone->got) << "nothing is proven yet";
    ann.settled(gone);
    EXPECT_TRUE(gone->value().found);
    EXPECT_TRUE(ann.entries().empty());
  }
}

TEST_F(ZkWithdrawTest, EveryWithdrawDuringAJoinIsAnswered) {
  for (const std::string lock : {"job", "not/there"}) {
    ann.join(1, lock);
    const auto first = ann.withdraw(1, lock);
    ann.wire().deliver_request();
    const auto second = ann.withdraw(1, lock);
    ann.wire().settle();
    EXPECT_TRUE(first->ok());
    EXPECT_TRUE(second->ok());
    EXPECT_TRUE(ann.entries().empty());
  }
}

TEST_F(ZkWithdrawTest, CreateInFlightThatIsLostIsLookedForAndRemoved) {
  for (const bool landed : {false, true}) {
    const std::uint64_t nonce = landed ? 2 : 1;
    ann.join(nonce);
    const auto gone = ann.withdraw(nonce);
    if (landed) {
      ann.wire().cut_after_requests();
    } else {
      ann.wire().cut();
    }
    EXPECT_FALSE(gone->got);
    EXPECT_EQ(ann.entries().size(), landed ? 1u : 0u);
    ann.wire().connect();
    ann.settled(gone);
    EXPECT_TRUE(gone->ok());
    EXPECT_TRUE(ann.entries().empty());
  }
}

TEST_F(ZkWithdrawTest, CreateInDoubtIsLookedForBehindASync) {
  for (const bool landed : {false, true}) {
    const std::uint64_t nonce = landed ? 2 : 1;
    const auto joined = ann.join(nonce);
    if (landed) {
      ann.wire().cut_after_requests();
    } else {
      ann.wire().cut();
    }
    ASSERT_TRUE(joined->got);
    EXPECT_TRUE(transient(joined->error()));
    const auto gone = ann.withdraw(nonce);
    EXPECT_FALSE(gone->got) << "cannot be known without a connection";
    ann.wire().connect();
    ann.wire().take_log();
    ann.settled(gone);
    EXPECT_TRUE(gone->ok());
    EXPECT_TRUE(ann.entries().empty());
  }
}

TEST_F(ZkWithdrawTest, SearchSendsASyncBeforeItsList) {
  ann.join(1);
  ann.wire().cut();
  ann.withdraw(1);
  ann.wire().take_log();
  ann.wire().connect();
  auto log = texts(ann.wire().take_log());
  std::erase(log, std::string("remove ") + kMissingNode);  // the heartbeat
  EXPECT_EQ(log, (Texts{"sync /app/job", "children /app/job"}));
}

// The join finds no entry. It must not create one after the withdraw has also found none.
TEST_F(ZkWithdrawTest, GivingUpWhileALostJoinIsLookedForLeavesNoEntry) {
  ann.join(1);
  ann.wire().cut();
  ann.wire().connect();
  ann.wire().settle();
  const auto again = ann.join(1);
  const auto gone = ann.withdraw(1);
  ann.settled(gone);
  EXPECT_TRUE(gone->ok());
  EXPECT_TRUE(again->got);
  EXPECT_FALSE(again->ok());
  EXPECT_TRUE(ann.entries().empty());
  EXPECT_EQ(creates(), 1u) << "the one that was lost";
}

TEST_F(ZkWithdrawTest, GivingUpWhileALostJoinIsReadLeavesNoEntry) {
  ann.join(1);
  ann.wire().cut_after_requests();
  ann.wire().connect();
  ann.wire().settle();
  const auto again = ann.join(1);
  ann.wire().exchange();  // the entry is found; the read of its owner is under way
  zk.remove(ann.entries().at(0));
  const auto gone = ann.withdraw(1);
  ann.settled(gone);
  EXPECT_TRUE(gone->ok());
  EXPECT_TRUE(again->got);
  EXPECT_TRUE(ann.entries().empty());
}

TEST_F(ZkWithdrawTest, GivingUpWhileTheDirectoriesAreMadeLeavesNoEntry) {
  const auto joined = ann.join(1, "a/b/c");
  ann.wire().exchange();  // the server has no such directory
  const auto gone = ann.withdraw(1, "a/b/c");
  ann.settled(gone);
  EXPECT_TRUE(gone->ok());
  EXPECT_TRUE(joined->got);
  EXPECT_FALSE(joined->ok());
  EXPECT_TRUE(ann.entries().empty());
  EXPECT_EQ(creates(), 1u) << "the first one alone";
}

TEST_F(ZkWithdrawTest, GivingUpBeforeTheDirectoryIsFoundMissingMakesNone) {
  const auto joined = ann.join(1, "a/b/c");
  const auto gone = ann.withdraw(1, "a/b/c");
  ann.settled(gone);
  EXPECT_TRUE(gone->ok());
  EXPECT_TRUE(joined->got);
  EXPECT_EQ(zk.find("/app/a"), nullptr);
}

TEST_F(ZkWithdrawTest, GivingUpWhileDirectoriesAreMadeAndTheConnectionIsLost) {
  const auto joined = ann.join(1, "a/b/c");
  ann.wire().exchange();
  const auto gone = ann.withdraw(1, "a/b/c");
  ann.wire().cut();
  EXPECT_TRUE(gone->ok()) << "no create was sent: nothing is in doubt";
  EXPECT_TRUE(joined->got);
  ann.wire().connect();
  ann.wire().settle();
  EXPECT_TRUE(ann.entries().empty());
}

TEST_F(ZkWithdrawTest, RefusedCreateThatWasGivenUpIsGone) {
  zk.refuse = [](const Request& request) {
    return request.kind == Kind::create_entry ? int{ZNOAUTH} : int{ZOK};
  };
  ann.join(1);
  EXPECT_TRUE(ann.settled(ann.withdraw(1))->ok());
}

}  // namespace
}  // namespace baton::zk
