// The order of what one client asks of one lock.
#include "etcd/lock_sequencer.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::etcd {
namespace {

class EtcdDoorsTest : public ::testing::Test {
 protected:
  void join(const std::string& who, const std::string& lock = "a/") {
    doors.join(lock, [this, who](bool go) { heard.push_back(who + (go ? "" : "!")); });
  }
  void peek(const std::string& who, const std::string& lock = "a/") {
    doors.peek(lock, [this, who](bool go) { heard.push_back(who + (go ? "" : "!")); });
  }
  using Heard = std::vector<std::string>;

  LockSequencer doors;
  Heard heard;
};

TEST_F(EtcdDoorsTest, JoinsGoOneAfterTheOther) {
  join("1");
  join("2");
  join("3");
  EXPECT_EQ(heard, Heard{"1"});
  doors.joined("a/", true);
  EXPECT_EQ(heard, (Heard{"1", "2"}));
  doors.joined("a/", true);
  doors.joined("a/", true);
  EXPECT_EQ(heard, (Heard{"1", "2", "3"}));
  EXPECT_EQ(doors.size(), 0u);
}

TEST_F(EtcdDoorsTest, LocksDoNotWaitForEachOther) {
  join("1");
  join("other", "b/");
  EXPECT_EQ(heard, (Heard{"1", "other"}));
}

TEST_F(EtcdDoorsTest, JoinsAndPeeksWaitForRemovalsSentBefore) {
  const auto first = doors.removing("a/");
  const auto second = doors.removing("a/");
  join("join");
  peek("peek");
  EXPECT_TRUE(heard.empty());
  doors.removed("a/", second);
  EXPECT_TRUE(heard.empty());
  doors.removed("a/", first);
  EXPECT_EQ(heard, (Heard{"join", "peek"}));
  doors.joined("a/", true);
  EXPECT_EQ(doors.size(), 0u);
}

TEST_F(EtcdDoorsTest, NobodyWaitsForLaterRemovals) {
  join("1");
  join("2");
  const auto later = doors.removing("a/");
  doors.joined("a/", true);
  EXPECT_EQ(heard, (Heard{"1", "2"}));
  doors.joined("a/", true);
  EXPECT_EQ(doors.size(), 1u);
  doors.removed("a/", later);
  EXPECT_EQ(doors.size(), 0u);
}

TEST_F(EtcdDoorsTest, RemovalsWaitForNobody) {
  join("1");
  const auto removal = doors.removing("a/");
  doors.removed("a/", removal);
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
  EXPECT_EQ(doors.size(), 0u);
}

TEST_F(EtcdDoorsTest, WhoWaitsForAnUnreachableStoreIsTurnedAway) {
  join("1");
  join("2");
  peek("peek");
  doors.joined("a/", false);
  EXPECT_EQ(heard, (Heard{"1", "2!", "peek!"}));
  EXPECT_EQ(doors.size(), 0u);
  join("3");
  EXPECT_EQ(heard.back(), "3");
}

TEST_F(EtcdDoorsTest, TurnsMayEndInsideTheCall) {
  for (int n = 0; n < 3; ++n) {
    doors.join("a/", [&, n](bool) {
      heard.push_back(std::to_string(n));
      doors.joined("a/", true);
    });
  }
  EXPECT_EQ(heard, (Heard{"0", "1", "2"}));
  EXPECT_EQ(doors.size(), 0u);
}

TEST_F(EtcdDoorsTest, TurnsMayJoinAgainInsideTheCall) {
  doors.join("a/", [&](bool) {
    heard.push_back("outer");
    join("inner");
    doors.joined("a/", true);
  });
  EXPECT_EQ(heard, (Heard{"outer", "inner"}));
  doors.joined("a/", true);
  EXPECT_EQ(doors.size(), 0u);
}

TEST_F(EtcdDoorsTest, WhoIsTurnedAwayMayComeBackInsideTheCall) {
  join("1");
  doors.join("a/", [&](bool go) {
    heard.push_back(go ? "2" : "2!");
    if (!go) join("again");
  });
  doors.joined("a/", false);
  EXPECT_EQ(heard, (Heard{"1", "2!", "again"}));
  doors.joined("a/", true);
  EXPECT_EQ(doors.size(), 0u);
}

TEST_F(EtcdDoorsTest, RemovalsMayBeginAndEndInsideATurn) {
  doors.join("a/", [&](bool) {
    const auto removal = doors.removing("a/");
    doors.removed("a/", removal);
    doors.joined("a/", true);
  });
  EXPECT_EQ(doors.size(), 0u);
}

TEST_F(EtcdDoorsTest, UnknownOnesAreFine) {
  doors.joined("never/", true);
  doors.removed("never/", 7);
  EXPECT_EQ(doors.size(), 0u);
}

}  // namespace
}  // namespace baton::etcd
