// The life of a session: opening, reconnecting, the lease, the end.
#include "fake_zk_client.h"

#include <gtest/gtest.h>
#include <zookeeper/zookeeper.h>

#include <memory>
#include <string>

namespace baton::zk {
namespace {

using namespace std::chrono_literals;

class ZkLineTest : public ::testing::Test {
 protected:
  // Lets time pass while every request is answered at once.
  void live(FakeZkClient& client, Nanos span) {
    for (; span > 0ms; span -= 50ms) {
      client.wire().settle();
      loop.advance(50ms);
    }
    client.wire().settle();
  }
  ManualLoop loop;
  FakeZk zk{loop};
};

// ---- opening

TEST_F(ZkLineTest, OpenWhenTheFirstWriteIsAnswered) {
  FakeZkClient ann(zk, {.open = false});
  EXPECT_FALSE(ann.opened->got);
  ann.wire().connect();
  EXPECT_EQ(texts(ann.wire().take_log()), Texts{std::string("remove ") + kMissingNode});
  ann.wire().deliver_request();
  EXPECT_FALSE(ann.opened->got);
  ann.wire().deliver_answer();
  EXPECT_TRUE(ann.opened->ok());
  EXPECT_GT(ann.session().lease()->deadline(), loop.now() + 4s) << "ready for a grant";
  EXPECT_EQ(ann.resumed, 0);
}

TEST_F(ZkLineTest, OpenSurvivesALostConnection) {
  FakeZkClient ann(zk, {.open = false});
  ann.wire().connect();
  ann.wire().cut();
  EXPECT_FALSE(ann.opened->got);
  ann.wire().connect();
  ann.wire().settle();
  EXPECT_TRUE(ann.opened->ok());
  EXPECT_EQ(ann.resumed, 0) << "nobody has missed anything";
}

TEST_F(ZkLineTest, EndWhileOpeningIsAnsweredThereAndNotToldTwice) {
  FakeZkClient ann(zk, {.open = false});
  ann.wire().connect();
  ann.wire().expire();
  ASSERT_TRUE(ann.opened->got);
  EXPECT_FALSE(ann.opened->ok());
  EXPECT_TRUE(ann.ended.empty());
}

// This must not be a permanent error, because the engine ends all waiting acquisitions with a
// permanent error. A session that ended before its first use has lost nothing.
TEST_F(ZkLineTest, EndWhileOpeningIsWorthAnotherTry) {
  FakeZkClient ann(zk, {.open = false});
  ann.wire().connect();
  // the server fails before it answers, and the next one does not know the session
  ann.wire().cut();
  ann.wire().expire();
  ASSERT_TRUE(ann.opened->got);
  EXPECT_TRUE(transient(ann.opened->error())) << ann.opened->error().what();
}

TEST_F(ZkLineTest, AnotherTimeoutWhileOpeningIsWorthAnotherTry) {
  FakeZkClient ann(zk, {.open = false});
  ann.wire().connect();
  ann.wire().cut();
  ann.wire().connect_as(ann.wire().session(), 4s);
  ASSERT_TRUE(ann.opened->got);
  EXPECT_TRUE(transient(ann.opened->error())) << ann.opened->error().what();
  EXPECT_TRUE(ann.ended.empty());
}

TEST_F(ZkLineTest, InfoTellsTheGrantedTimeoutAndTheState) {
  zk.timeout = 6s;
  FakeZkClient ann(zk);
  EXPECT_EQ(ann.session().info().backend, "zk");
  EXPECT_EQ(ann.session().info().endpoint, "fake:2181");
  EXPECT_EQ(ann.session().info().timeout, 6s);
  EXPECT_EQ(ann.session().info().state, SessionState::connected);
  EXPECT_EQ(ann.session().backstop(), 3s);
  ann.wire().cut();
  EXPECT_EQ(ann.session().info().state, SessionState::suspect);
  ann.wire().connect();
  EXPECT_EQ(ann.session().info().state, SessionState::connected);
  ann.wire().expire();
  EXPECT_EQ(ann.session().info().state, SessionState::closed);
}

TEST_F(ZkLineTest, BackstopIsHalfTheTimeoutWithinReason) {
  zk.timeout = 1s;
  EXPECT_EQ(FakeZkClient(zk).session().backstop(), 1s);
  zk.timeout = 120s;
  EXPECT_EQ(FakeZkClient(zk).session().backstop(), 30s);
}

// ---- reconnecting

TEST_F(ZkLineTest, ReconnectWithTheSameSessionResumes) {
  FakeZkClient ann(zk);
  ann.settled(ann.join(1));
  for (int n = 1; n <= 3; ++n) {
    ann.wire().cut();
    ann.wire().connect();
    EXPECT_EQ(ann.resumed, n);
  }
  EXPECT_TRUE(ann.ended.empty());
  EXPECT_EQ(ann.settled(ann.look(1))->value().view.tickets.size(), 1u);
}

TEST_F(ZkLineTest, HeartbeatIsTheFirstThingOnANewConnection) {
  FakeZkClient ann(zk);
  ann.settled(ann.join(1));
  ann.wire().cut();
  const auto looked = ann.look(1);
  ann.wire().take_log();
  ann.wire().connect();
  EXPECT_EQ(texts(ann.wire().take_log()),
            (Texts{std::string("remove ") + kMissingNode, "children /app/job"}));
  ann.wire().settle();
  EXPECT_TRUE(looked->ok()) << "asked while disconnected, answered after";
}

TEST_F(ZkLineTest, JoinWhileDisconnectedIsKeptAndSentOnce) {
  zk.put("/app/job");
  FakeZkClient ann(zk);
  ann.wire().cut();
  const auto asked = ann.join(1);
  loop.advance(1s);
  EXPECT_FALSE(asked->got);
  ann.wire().connect();
  ann.settled(asked);
  EXPECT_TRUE(asked->ok());
  EXPECT_EQ(ann.entries().size(), 1u);
}

// ---- the end

TEST_F(ZkLineTest, AnotherSessionIdIsTheEnd) {
  FakeZkClient ann(zk);
  ann.settled(ann.join(1));
  const auto lease = ann.session().lease();
  ann.wire().cut();
  ann.wire().connect_as(0x9999, zk.timeout);
  ASSERT_EQ(ann.ended.size(), 1u);
  EXPECT_EQ(ann.ended[0].first, make_error_code(Errc::session_expired));
  EXPECT_TRUE(lease->ended());
  EXPECT_EQ(ann.resumed, 0);
  EXPECT_FALSE(ann.wire().line_alive());
}

TEST_F(ZkLineTest, AnotherTimeoutIsTheEnd) {
  for (const auto timeout : {4'000ms, 16'000ms}) {
    FakeZkClient ann(zk);
    const auto lease = ann.session().lease();
    ann.wire().cut();
    ann.wire().connect_as(ann.wire().session(), timeout);
    ASSERT_EQ(ann.ended.size(), 1u);
    EXPECT_EQ(ann.ended[0].first, make_error_code(Errc::session_expired));
    const std::string& detail = ann.ended[0].second;
    EXPECT_NE(detail.find("8000"), std::string::npos) << detail;
    EXPECT_NE(detail.find(std::to_string(timeout.count())), std::string::npos) << detail;
    EXPECT_TRUE(lease->ended());
    EXPECT_EQ(ann.resumed, 0);
  }
}

TEST_F(ZkLineTest, ExpiryIsToldOnceAndNothingIsAnsweredAfterIt) {
  FakeZkClient ann(zk);
  ann.settled(ann.join(1));
  int events = 0;
  loop.step([&] {
    const Ticket own{1, ann.id(1) + "-lock-0000000000", Nonce{1}};
    ann.session().watch(lock_name("job"), own, {}, [&](WatchEvent) { ++events; });
  });
  ann.wire().settle();
  ann.wire().cut();
  const auto joined = ann.join(2);
  const auto looked = ann.look(1);
  const auto verified = ann.verify(1);
  const auto gone = ann.withdraw(1);
  const auto seen = ann.inspect();
  ann.wire().expire();
  ASSERT_EQ(ann.ended.size(), 1u);
  EXPECT_EQ(ann.ended[0].first, make_error_code(Errc::session_expired));
  EXPECT_TRUE(ann.session().lease()->ended());
  EXPECT_TRUE(ann.entries().empty()) << "the server has removed them";
  ann.wire().connect();
  loop.advance(60s);
  EXPECT_EQ(ann.ended.size(), 1u);
  EXPECT_FALSE(joined->got || looked->got || verified->got || gone->got || seen->got);
  EXPECT_EQ(events, 0);
  EXPECT_EQ(loop.timers(), 0u);
}

TEST_F(ZkLineTest, RefusedCredentialsAreTheEnd) {
  FakeZkClient ann(zk, {.open = false});
  ann.wire().refuse_credentials();
  ASSERT_TRUE(ann.opened->got);
  EXPECT_EQ(ann.opened->error().errc(), Errc::permission_denied);
}

TEST_F(ZkLineTest, DestroyedSessionAnswersNothing) {
  FakeZkClient ann(zk);
  const auto joined = ann.join(1);
  const auto gone = ann.withdraw(2);
  const auto lease = ann.session().lease();
  ann.destroy();
  loop.advance(60s);
  EXPECT_FALSE(joined->got);
  EXPECT_TRUE(gone->got) << "that was answered before";
  EXPECT_TRUE(lease->ended());
  EXPECT_EQ(loop.timers(), 0u);
}

// ---- the lease

// Servers that were set back always refuse a client that has seen newer changes.
TEST_F(ZkLineTest, SessionThatNobodyTakesBackIsGivenUpInTheEnd) {
  FakeZkClient ann(zk);
  ann.wire().cut();
  loop.advance(59s);
  EXPECT_TRUE(ann.ended.empty()) << "an outage: who waits keeps his place";
  ann.wire().connect();
  ann.wire().settle();
  ann.wire().cut();
  loop.advance(59s);
  EXPECT_TRUE(ann.ended.empty()) << "counted from the last time";
  loop.advance(2s);
  ASSERT_EQ(ann.ended.size(), 1u);
  EXPECT_EQ(ann.ended[0].first, make_error_code(Errc::session_expired));
  EXPECT_FALSE(ann.wire().line_alive()) << "the next session begins with nothing seen";
  EXPECT_TRUE(ann.session().lease()->ended());
  loop.advance(200s);
  EXPECT_EQ(ann.ended.size(), 1u);
}

TEST_F(ZkLineTest, LeaseIsExtendedByHeartbeatsWhileAnythingIsHeld) {
  FakeZkClient ann(zk);
  ann.settled(ann.join(1));
  const auto lease = ann.session().lease();
  live(ann, 60s);
  EXPECT_EQ(ann.session().lease(), lease);
  EXPECT_FALSE(lease->ended());
  EXPECT_GT(lease->deadline(), loop.now() + 3s);
  EXPECT_GT(lease->suspect_at(), loop.now());
}

TEST_F(ZkLineTest, OtherRequestsExtendNothing) {
  FakeZkClient ann(zk);
  ann.settled(ann.join(1));
  const Time before = ann.session().lease()->deadline();
  loop.advance(900ms);
  ann.settled(ann.look(1));
  ann.settled(ann.verify(1));
  EXPECT_EQ(ann.session().lease()->deadline(), before);
}

TEST_F(ZkLineTest, LeaseThatRanOutNeverComesBack) {
  FakeZkClient ann(zk);
  ann.settled(ann.join(1));
  const auto old = ann.session().lease();
  ann.wire().cut();
  loop.advance(7s);
  ASSERT_LT(old->deadline(), loop.now());
  ann.wire().connect();
  live(ann, 1s + 50ms);  // after this gap a single heartbeat proves too little
  EXPECT_TRUE(old->ended());
  EXPECT_NE(ann.session().lease(), old);
  EXPECT_GT(ann.session().lease()->deadline(), loop.now()) << "for who comes now";
  EXPECT_FALSE(ann.session().lease()->ended());
}

TEST_F(ZkLineTest, IdleSessionStopsWritingAndBeginsAgainWithTheNextJoin) {
  FakeZkClient ann(zk);
  ann.settled(ann.join(1));
  ann.settled(ann.withdraw(1));
  live(ann, 3s);
  ann.wire().take_log();
  live(ann, 20s + 350ms);
  for (const auto& request : ann.wire().take_log()) EXPECT_EQ(text(request), "sync /");
  const auto asked = ann.join(2);
  const auto log = texts(ann.wire().take_log());
  ASSERT_EQ(log.size(), 3u);
  EXPECT_EQ(log[0], std::string("remove ") + kMissingNode)
      << "before the create: it may be granted";
  ann.wire().exchange();
  ASSERT_TRUE(asked->ok());
  EXPECT_GT(ann.session().lease()->deadline(), loop.now() + 3s);
}

// ---- close

TEST_F(ZkLineTest, CloseFreesTheEntriesAndIsAnswered) {
  FakeZkClient ann(zk);
  ann.settled(ann.join(1));
  const auto closed = ann.close();
  ann.settled(closed);
  EXPECT_TRUE(closed->ok());
  EXPECT_TRUE(ann.entries().empty());
  EXPECT_TRUE(ann.ended.empty()) << "we have ended it";
  EXPECT_EQ(loop.timers(), 0u);
}

TEST_F(ZkLineTest, CloseWaitsALittleForAConnection) {
  FakeZkClient ann(zk);
  ann.settled(ann.join(1));
  ann.wire().cut();
  const auto closed = ann.close();
  EXPECT_FALSE(closed->got);
  EXPECT_EQ(ann.entries().size(), 1u);
  loop.advance(1s);
  ann.wire().connect();
  ann.settled(closed);
  EXPECT_TRUE(ann.entries().empty());
}

TEST_F(ZkLineTest, CloseDoesNotWaitForEver) {
  FakeZkClient ann(zk);
  ann.wire().cut();
  const auto closed = ann.close();
  loop.advance(10s);
  ann.settled(closed);
  EXPECT_TRUE(closed->ok());
}

// Requests under way are lost then. They must not be retried again and again.
TEST_F(ZkLineTest, CloseWhileOthersStillAskDoesNotSpin) {
  FakeZkClient ann(zk);
  ann.settled(ann.join(1));
  const auto verified = ann.verify(1);
  const auto seen = ann.inspect();
  const auto listed = ann.list();
  const auto evicted = ann.evict("other-lock-0000000001");
  const auto nothing = ann.evict("nonsense");
  loop.step([&] {
    const Ticket own{1, ann.id(1) + "-lock-0000000000", Nonce{1}};
    ann.session().watch(lock_name("job"), own, {}, [](WatchEvent) {});
  });
  ann.wire().take_log();
  const auto closed = ann.close();
  ann.settled(closed);
  EXPECT_TRUE(closed->ok());
  loop.advance(10s);
  EXPECT_TRUE(ann.wire().take_log().empty()) << "nothing is sent after the goodbye";
}

TEST_F(ZkLineTest, CloseOfASessionThatEndsIsAnswered) {
  FakeZkClient ann(zk);
  ann.wire().cut();
  const auto closed = ann.close();
  ann.wire().expire();
  EXPECT_TRUE(closed->ok());
  EXPECT_TRUE(ann.ended.empty());
  EXPECT_EQ(loop.timers(), 0u);
}

}  // namespace
}  // namespace baton::zk
