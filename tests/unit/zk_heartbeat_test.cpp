#include "zk/heartbeat.h"

#include "fake_zk.h"

#include <gtest/gtest.h>
#include <zookeeper/zookeeper.h>

#include <memory>
#include <string>
#include <vector>

namespace baton::zk {
namespace {

using namespace std::chrono_literals;

const std::string kWrite = std::string("remove ") + kMissingNode;
const std::string kSync = "sync /";

// T = 8 s, so h = 1 s and the margin at the end is 100 ms.
class ZkHeartbeatTest : public ::testing::Test, protected TransportListener {
 protected:
  ZkHeartbeatTest() : line(zk.make_transport(*this)), wire(zk.wire(0)) {
    heartbeat = std::make_unique<Heartbeat>(loop, *line, 8s, loop.now(), [this] { ++renewed; });
  }

  void transport_connected(const Connection&) override { heartbeat->connected(loop.now()); }
  void transport_disconnected() override { heartbeat->disconnected(); }
  void transport_ended(Status, const std::string&) override {}
  void transport_event(NodeEvent, const std::string&) override {}

  void set_active(bool active) {
    loop.step([&] { heartbeat->set_active(active); });
  }
  Texts sent() { return texts(wire.take_log()); }
  // Lets time pass while every request is answered at once.
  void live(Nanos span) {
    for (; span > 0ms; span -= 10ms) {
      wire.settle();
      loop.advance(10ms);
    }
    wire.settle();
  }
  // The formula of the contract.
  static Time formula(Time heartbeat_sent, Nanos gap, Time write_sent) {
    const Nanos g = std::max<Nanos>(1s, gap);
    return std::min(heartbeat_sent + 6s - g, write_sent + 8s) - 80ms - 20ms;
  }

  ManualLoop loop;
  FakeZk zk{loop};
  std::unique_ptr<Transport> line;
  FakeWire& wire;
  int renewed = 0;
  std::unique_ptr<Heartbeat> heartbeat;
};

TEST_F(ZkHeartbeatTest, FirstOneIsAWriteAtOnce) {
  loop.advance(10s);
  EXPECT_EQ(sent(), Texts{});
  EXPECT_LT(heartbeat->deadline(), loop.now()) << "nothing is proven yet";
  wire.connect();
  EXPECT_EQ(sent(), Texts{kWrite});
  const Time first = loop.now();
  loop.advance(30ms);
  wire.settle();
  EXPECT_EQ(renewed, 1);
  EXPECT_EQ(heartbeat->deadline(), formula(first, 0s, first)) << "from when it was sent";
}

TEST_F(ZkHeartbeatTest, EverySecondOneIsAWriteWhileActive) {
  wire.connect();
  live(6s);
  EXPECT_EQ(sent(), (Texts{kWrite, kSync, kWrite, kSync, kWrite, kSync, kWrite}));
}

TEST_F(ZkHeartbeatTest, OnlySyncsWhileIdle) {
  wire.connect();
  wire.settle();
  set_active(false);
  sent();
  live(4s);
  EXPECT_EQ(sent(), (Texts{kSync, kSync, kSync, kSync}));
}

TEST_F(ZkHeartbeatTest, NeverTwoUnanswered) {
  wire.connect();
  sent();
  loop.advance(60s);
  EXPECT_EQ(sent(), Texts{}) << "the first one has no answer";
  wire.deliver_request();
  loop.advance(60s);
  set_active(false);
  set_active(true);
  EXPECT_EQ(sent(), Texts{});
  wire.deliver_answer();
  EXPECT_EQ(wire.requests(), 1u) << "overdue: the next one goes at once";
}

TEST_F(ZkHeartbeatTest, IntervalCountsFromSendToSend) {
  wire.connect();
  sent();
  loop.advance(400ms);
  wire.settle();
  loop.advance(599ms);
  EXPECT_EQ(sent(), Texts{});
  loop.advance(1ms);
  EXPECT_EQ(sent(), Texts{kSync});
}

TEST_F(ZkHeartbeatTest, BecomingActiveWithAnOldWriteBeatsAtOnceWithAWrite) {
  wire.connect();
  wire.settle();
  set_active(false);
  live(20s + 300ms);
  sent();
  ASSERT_LT(heartbeat->deadline(), loop.now()) << "without writes the lease runs out";
  set_active(true);
  EXPECT_EQ(sent(), Texts{kWrite});
  const Time write = loop.now();
  wire.settle();
  // The syncs before it were 1 s apart. The write came 300 ms after the last sync.
  EXPECT_LE(heartbeat->deadline(), formula(write, 300ms, write));
  EXPECT_GT(heartbeat->deadline(), write + 3s);
  live(2s);
  EXPECT_EQ(sent(), (Texts{kSync, kWrite}));
}

TEST_F(ZkHeartbeatTest, BecomingActiveWithAFreshWriteCostsNothing) {
  wire.connect();
  wire.settle();
  set_active(false);
  sent();
  live(500ms);
  set_active(true);
  EXPECT_EQ(sent(), Texts{});
  set_active(true);
  EXPECT_EQ(sent(), Texts{});
}

TEST_F(ZkHeartbeatTest, BecomingActiveWhileASyncIsUnderWayWritesWhenItIsAnswered) {
  wire.connect();
  wire.settle();
  set_active(false);
  live(20s);
  loop.advance(1s);
  ASSERT_EQ(wire.requests(), 1u);
  sent();
  set_active(true);
  EXPECT_EQ(sent(), Texts{});
  wire.settle();
  EXPECT_EQ(sent(), Texts{kWrite});
}

TEST_F(ZkHeartbeatTest, AfterReconnectItBeatsAtOnce) {
  wire.connect();
  live(1s + 300ms);
  sent();
  wire.cut();
  loop.advance(5s);
  EXPECT_EQ(sent(), Texts{}) << "none while disconnected";
  wire.connect();
  EXPECT_EQ(sent(), Texts{kWrite});
}

TEST_F(ZkHeartbeatTest, AfterAnOutageASecondHeartbeatSoonMovesTheDeadline) {
  wire.connect();
  live(1s + 300ms);
  wire.cut();
  loop.advance(3s);  // the first deadline after this is earlier than the next regular heartbeat
  wire.connect();
  sent();
  live(100ms);
  EXPECT_EQ(sent(), Texts{kSync}) << "one, and no more";
  EXPECT_GT(heartbeat->deadline(), loop.now() + 4s);
}

TEST_F(ZkHeartbeatTest, AfterAnOutageThatOutlastsTheLeaseTheSecondHeartbeatIsAWrite) {
  wire.connect();
  live(1s + 300ms);
  wire.cut();
  loop.advance(7s);  // the first deadline after this lies in the past
  wire.connect();
  sent();
  live(100ms);
  EXPECT_EQ(sent(), Texts{kWrite}) << "only a write starts a new lease";
  EXPECT_GT(heartbeat->deadline(), loop.now() + 4s);
}

TEST_F(ZkHeartbeatTest, AfterReconnectAnIdleOneSyncs) {
  wire.connect();
  wire.settle();
  set_active(false);
  wire.cut();
  sent();
  wire.connect();
  EXPECT_EQ(sent(), Texts{kSync});
}

TEST_F(ZkHeartbeatTest, BecomingActiveWhileDisconnectedWritesOnTheNextConnection) {
  wire.connect();
  wire.settle();
  set_active(false);
  live(20s);
  wire.cut();
  set_active(true);
  sent();
  loop.advance(5s);
  EXPECT_EQ(sent(), Texts{});
  wire.connect();
  EXPECT_EQ(sent(), Texts{kWrite});
}

TEST_F(ZkHeartbeatTest, ReconnectDoesNotWaitForTheOneThatWasLost) {
  wire.connect();
  live(1s + 300ms);
  loop.advance(1s);  // a heartbeat is under way
  ASSERT_EQ(wire.requests(), 1u);
  wire.cut();
  sent();
  wire.connect();
  EXPECT_EQ(sent(), Texts{kWrite});
  live(3s);
  EXPECT_EQ(sent(), (Texts{kSync, kWrite, kSync})) << "and there is one of them, not two";
}

TEST_F(ZkHeartbeatTest, DeadlineFollowsTheContract) {
  wire.connect();
  Time write = loop.now();
  Time last = write;
  wire.settle();
  EXPECT_EQ(heartbeat->deadline(), formula(last, 0s, write));
  HeartbeatLease lease(8s, last);  // also computes the third term, which formula() does not have
  lease.reconnected(last);
  lease.answered(last, true, last);
  // The time that each further heartbeat takes.
  for (const Nanos late :
       {1ms, 1ms, 700ms, 2'500ms, 1ms, 1ms, 100ms, 3'900ms, 1ms, 1ms, 1'000ms, 1ms, 1ms}) {
    // A heartbeat is sent when the last one was answered and the interval is over. A write that is
    // overdue does not wait for the interval.
    if (wire.requests() == 0) loop.advance(std::max<Nanos>(last + 1s - loop.now(), 0s));
    ASSERT_EQ(wire.requests(), 1u);
    const Nanos gap = loop.now() - last;
    last = loop.now();
    const Time before = heartbeat->deadline();
    const bool is_write = text(wire.next_request()) == kWrite;
    if (is_write) write = last;
    loop.advance(late);
    EXPECT_EQ(heartbeat->deadline(), before) << "nothing moves it but an answer";
    wire.deliver_request();
    wire.deliver_answer();
    lease.answered(last, is_write, loop.now());
    EXPECT_EQ(heartbeat->deadline(), lease.deadline());
    EXPECT_LE(heartbeat->deadline(), formula(last, gap, write));
    EXPECT_GE(heartbeat->deadline(), before) << "never shorter than promised before";
    EXPECT_LE(loop.now() - write, 6s) << "writes come often enough";
  }
}

TEST_F(ZkHeartbeatTest, DeadlineStopsAtTheLastWrite) {
  wire.connect();
  const Time write = loop.now();
  wire.settle();
  set_active(false);
  live(7s);
  EXPECT_EQ(heartbeat->deadline(), write + 8s - 100ms) << "syncs alone carry it no further";
}

TEST_F(ZkHeartbeatTest, LostOneMovesNothing) {
  wire.connect();
  wire.settle();
  const Time before = heartbeat->deadline();
  const int told = renewed;
  loop.advance(1s);
  ASSERT_EQ(wire.requests(), 1u);
  wire.cut_after_requests();  // the server has received it, but the client cannot know that
  EXPECT_EQ(heartbeat->deadline(), before);
  EXPECT_EQ(renewed, told);
}

// Only answers on the current connection count, even if the transport brings older answers.
TEST_F(ZkHeartbeatTest, AnswerOfAnOldConnectionMovesNothing) {
  struct Slow final : Transport {
    void send(const Request&, ReplyHandler answer) override { asked.push_back(std::move(answer)); }
    bool provably_disconnected() const noexcept override { return true; }
    void close(Task) override {}
    void reply(std::size_t i, Status status) {
      Reply reply;
      reply.status = status;
      asked.at(i)(reply);
    }
    std::vector<ReplyHandler> asked;
  } slow;
  int told = 0;
  Heartbeat beat(loop, slow, 8s, loop.now(), [&] { ++told; });
  loop.step([&] { beat.connected(loop.now()); });
  loop.step([&] { beat.disconnected(); });
  loop.advance(2s);
  loop.step([&] { beat.connected(loop.now()); });
  ASSERT_EQ(slow.asked.size(), 2u);
  loop.step([&] { slow.reply(0, Status::no_node); });
  EXPECT_EQ(told, 0);
  EXPECT_EQ(beat.deadline(), Time{});
  EXPECT_EQ(slow.asked.size(), 2u) << "the one under way is still unanswered";
  const Time second = loop.now();
  loop.step([&] { slow.reply(1, Status::no_node); });
  EXPECT_EQ(told, 1);
  EXPECT_EQ(beat.deadline(), formula(second, 0s, second));
}

TEST_F(ZkHeartbeatTest, NoNodeAndNoAuthBothProveAWrite) {
  for (const int code : {ZNONODE, ZNOAUTH}) {
    zk.refuse = [code](const Request& r) {
      return r.kind == Request::Kind::remove ? code : int{ZOK};
    };
    const int told = renewed;
    wire.connect();
    const Time sent_at = loop.now();
    wire.settle();
    EXPECT_EQ(renewed, told + 1) << code;
    EXPECT_GE(heartbeat->deadline(), sent_at + 4s) << code;
    loop.advance(500ms);
    wire.cut();
  }
}

TEST_F(ZkHeartbeatTest, RefusalsProveNothingAndAreTriedAgainLater) {
  wire.connect();
  wire.settle();
  sent();
  const Time before = heartbeat->deadline();
  const int told = renewed;
  zk.refuse = [](const Request&) { return int{ZTHROTTLEDOP}; };
  live(4s);
  EXPECT_EQ(heartbeat->deadline(), before);
  EXPECT_EQ(renewed, told);
  EXPECT_EQ(sent().size(), 4u) << "one in an interval, no more";
  zk.refuse = nullptr;
  live(2s);
  EXPECT_GT(heartbeat->deadline(), before);
}

// A heartbeat after a refused write is a write, not a sync, because the lease still needs a write.
TEST_F(ZkHeartbeatTest, RefusedWriteIsFollowedByAWrite) {
  zk.refuse = [](const Request& r) {
    return r.kind == Request::Kind::remove ? int{ZSYSTEMERROR} : int{ZOK};
  };
  wire.connect();
  live(2s);
  EXPECT_EQ(sent(), (Texts{kWrite, kWrite, kWrite}));
}

TEST_F(ZkHeartbeatTest, NoAuthOnASyncProvesNothing) {
  wire.connect();
  wire.settle();
  const Time before = heartbeat->deadline();
  zk.refuse = [](const Request& r) {
    return r.kind == Request::Kind::sync ? int{ZNOAUTH} : int{ZOK};
  };
  loop.advance(1s);
  wire.settle();
  EXPECT_EQ(heartbeat->deadline(), before);
}

TEST_F(ZkHeartbeatTest, SuspectWhenTwoAndAHalfIntervalsPassed) {
  wire.connect();
  const Time sent_at = loop.now();
  loop.advance(30ms);
  wire.settle();
  EXPECT_EQ(heartbeat->suspect_at(), sent_at + 2'500ms);
}

TEST_F(ZkHeartbeatTest, NothingIsLeftOfItAfterItsEnd) {
  wire.connect();
  wire.deliver_request();
  loop.step([&] { heartbeat.reset(); });
  wire.deliver_answer();
  EXPECT_EQ(renewed, 0);
  EXPECT_EQ(loop.timers(), 0u);
}

}  // namespace
}  // namespace baton::zk
