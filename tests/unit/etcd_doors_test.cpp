// LockSequencer: the order of the joins, peeks and removals of one client on one lock.
#include "etcd/lock_sequencer.h"
#include "manual_loop.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::etcd {
namespace {

class EtcdDoorsTest : public ::testing::Test {
 protected:
  using Turn = LockSequencer::Turn;
  using Removal = LockSequencer::Removal;
  using Heard = std::vector<std::string>;

  void join(const std::string& who, const std::string& lock = "a/") {
    doors->join(lock, [this, who](std::optional<Turn> turn) {
      heard.push_back(who + (turn ? "" : "!"));
      if (turn) turns.push_back(*std::move(turn));
    });
  }
  void peek(const std::string& who, const std::string& lock = "a/") {
    doors->peek(lock, [this, who](bool go) { heard.push_back(who + (go ? "" : "!")); });
  }
  // Ends the oldest turn.
  void joined(bool served = true) {
    ASSERT_FALSE(turns.empty());
    Turn turn = std::move(turns.front());
    turns.pop_front();
    turn.end(served);
  }

  ManualLoop loop;
  std::unique_ptr<LockSequencer> doors = std::make_unique<LockSequencer>(loop);
  Heard heard;
  std::deque<Turn> turns;
};

TEST_F(EtcdDoorsTest, JoinsGoOneAfterTheOther) {
  join("1");
  join("2");
  join("3");
  EXPECT_EQ(heard, Heard{"1"});
  joined();
  EXPECT_EQ(heard, (Heard{"1", "2"}));
  joined();
  joined();
  EXPECT_EQ(heard, (Heard{"1", "2", "3"}));
  EXPECT_EQ(doors->size(), 0u);
}

TEST_F(EtcdDoorsTest, LocksDoNotWaitForEachOther) {
  join("1");
  join("other", "b/");
  EXPECT_EQ(heard, (Heard{"1", "other"}));
}

TEST_F(EtcdDoorsTest, JoinsAndPeeksWaitForRemovalsSentBefore) {
  Removal first = doors->removing("a/");
  Removal second = doors->removing("a/");
  join("join");
  peek("peek");
  EXPECT_TRUE(heard.empty());
  second.end();
  EXPECT_TRUE(heard.empty());
  first.end();
  EXPECT_EQ(heard, (Heard{"join", "peek"}));
  joined();
  EXPECT_EQ(doors->size(), 0u);
}

TEST_F(EtcdDoorsTest, NobodyWaitsForLaterRemovals) {
  join("1");
  join("2");
  Removal later = doors->removing("a/");
  joined();
  EXPECT_EQ(heard, (Heard{"1", "2"}));
  joined();
  EXPECT_EQ(doors->size(), 1u);
  later.end();
  EXPECT_EQ(doors->size(), 0u);
}

TEST_F(EtcdDoorsTest, RemovalsWaitForNobody) {
  join("1");
  Removal removal = doors->removing("a/");
  removal.end();
  EXPECT_EQ(heard, Heard{"1"});
}

TEST_F(EtcdDoorsTest, PeeksDoNotWaitForAJoinUnderWay) {
  join("1");
  peek("peek");
  EXPECT_EQ(heard, (Heard{"1", "peek"}));
}

TEST_F(EtcdDoorsTest, PeeksAloneLeaveNothingBehind) {
  peek("peek");
  EXPECT_EQ(heard, Heard{"peek"});
  EXPECT_EQ(doors->size(), 0u);
}

TEST_F(EtcdDoorsTest, WhoWaitsForAnUnreachableStoreIsTurnedAway) {
  join("1");
  join("2");
  peek("peek");  // waits behind join 2
  Removal removal = doors->removing("a/");
  peek("later");
  joined(false);
  EXPECT_EQ(heard, (Heard{"1", "2!", "peek!", "later!"}));
  removal.end();
  EXPECT_EQ(doors->size(), 0u);
  join("3");
  EXPECT_EQ(heard.back(), "3");
}

TEST_F(EtcdDoorsTest, TurnsMayEndInsideTheCall) {
  for (int n = 0; n < 3; ++n) {
    doors->join("a/", [&, n](std::optional<Turn> turn) {
      heard.push_back(std::to_string(n));
      turn->end(true);
    });
  }
  EXPECT_EQ(heard, (Heard{"0", "1", "2"}));
  EXPECT_EQ(doors->size(), 0u);
}

TEST_F(EtcdDoorsTest, TurnsMayJoinAgainInsideTheCall) {
  doors->join("a/", [&](std::optional<Turn> turn) {
    heard.push_back("outer");
    join("inner");
    turn->end(true);
  });
  EXPECT_EQ(heard, (Heard{"outer", "inner"}));
  joined();
  EXPECT_EQ(doors->size(), 0u);
}

TEST_F(EtcdDoorsTest, WhoIsTurnedAwayMayComeBackInsideTheCall) {
  join("1");
  doors->join("a/", [&](std::optional<Turn> turn) {
    heard.push_back(turn ? "2" : "2!");
    if (!turn) join("again");
  });
  joined(false);
  EXPECT_EQ(heard, (Heard{"1", "2!", "again"}));
  joined();
  EXPECT_EQ(doors->size(), 0u);
}

TEST_F(EtcdDoorsTest, RemovalsMayBeginAndEndInsideATurn) {
  doors->join("a/", [&](std::optional<Turn> turn) {
    doors->removing("a/").end();
    turn->end(true);
  });
  EXPECT_EQ(doors->size(), 0u);
}

TEST_F(EtcdDoorsTest, ATurnEndsOnce) {
  join("1");
  join("2");
  join("3");
  turns.front().end(true);
  turns.front().end(true);
  EXPECT_EQ(heard, (Heard{"1", "2"}));
}

// This happens when the store has changed: Link drops the answer, and the session ends in the same
// step.
TEST_F(EtcdDoorsTest, ADroppedTurnEndsAfterTheStep) {
  join("1");
  join("2");
  loop.step([&] {
    turns.clear();
    EXPECT_EQ(heard, Heard{"1"});
  });
  EXPECT_EQ(heard, (Heard{"1", "2"}));
}

TEST_F(EtcdDoorsTest, ADroppedRemovalEndsAfterTheStep) {
  std::optional<Removal> removal = doors->removing("a/");
  join("1");
  loop.step([&] {
    removal.reset();
    EXPECT_TRUE(heard.empty());
  });
  EXPECT_EQ(heard, Heard{"1"});
}

TEST_F(EtcdDoorsTest, NothingStartsAfterClose) {
  join("1");
  join("2");
  Removal removal = doors->removing("b/");
  join("b", "b/");
  peek("b", "b/");
  doors->close();
  joined(false);
  removal.end();
  join("3");
  peek("4");
  EXPECT_EQ(heard, Heard{"1"});
}

TEST_F(EtcdDoorsTest, CloseBeatsADroppedTurn) {
  join("1");
  join("2");
  loop.step([&] {
    turns.clear();
    doors->close();
  });
  EXPECT_EQ(heard, Heard{"1"});
}

TEST_F(EtcdDoorsTest, TurnsAndRemovalsMayOutliveTheSequencer) {
  join("1");
  join("2");
  Removal removal = doors->removing("a/");
  std::optional<Removal> dropped = doors->removing("a/");
  join("3", "b/");
  loop.step([&] {
    dropped.reset();
    doors.reset();
  });
  joined();
  loop.step([&] { turns.clear(); });
  removal.end();
  EXPECT_EQ(heard, (Heard{"1", "3"}));
}

}  // namespace
}  // namespace baton::etcd
