// Answers that arrive when nothing waits for them any more, and leases without keys.
#include "fake_etcd_leases.h"
#include "fake_etcd_watches.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace baton::etcd {
namespace {

using namespace std::chrono_literals;

// ---- a keepalive is answered after the deadline of its lease

class EtcdLateKeepaliveTest : public ::testing::Test {
 protected:
  EtcdLateKeepaliveTest() {
    ann.settled(ann.join(1));
    lease = ann.session().lease();
    const auto before = ann.wire.sent(StreamKind::keep_alive);
    while (ann.wire.sent(StreamKind::keep_alive) == before) loop.advance(1ms);
    ann.pass(10ms);  // one keepalive is answered
    old = lease->deadline();
    while (ann.wire.sent(StreamKind::keep_alive) == before + 1) loop.advance(1ms);
    sent = loop.now();
    loop.advance(1ms);  // the answer to the next one is under way
  }
  ManualLoop loop;
  FakeEtcd etcd{loop};
  FakeEtcdClient ann{etcd};
  std::shared_ptr<LeaseView> lease;
  Time old{};
  Time sent{};
};

// The process is paused between a keepalive and its answer, and then reads the answer first. The
// store still has the lease, but other threads may have seen that the hold is lost.
TEST_F(EtcdLateKeepaliveTest, ItDoesNotReviveTheHoldsThatWereLostMeanwhile) {
  loop.jump(old - loop.now() + 1ms);
  ASSERT_LT(loop.now(), lease_deadline(sent, 6s));
  loop.advance(20ms);
  EXPECT_TRUE(lease->ended());
  const auto next = ann.session().lease();
  EXPECT_NE(next, lease) << "what is granted from now on counts on a new one";
  EXPECT_GE(next->deadline(), lease_deadline(sent, 6s));
  EXPECT_TRUE(ann.ended.empty()) << "waiters keep their places";
}

TEST_F(EtcdLateKeepaliveTest, ItProvesNothingAfterItsOwnDeadline) {
  loop.jump(lease_deadline(sent, 6s) - loop.now() + 1ms);
  loop.advance(0ms);
  EXPECT_LE(ann.session().lease()->deadline(), loop.now());
}

// ---- answers on the stream of keepalives

class EtcdKeepaliveAnswersTest : public EtcdLeasesFixture {};

TEST_F(EtcdKeepaliveAnswersTest, AnswerWithoutAQuestionIsIgnored) {
  const Time granted = loop.now();
  key();
  wire.answers_twice = true;
  loop.advance(granted + 4s - loop.now() + 10ms);
  EXPECT_EQ(leases->deadline(), due(granted + 4s));
  const int told = renewed;
  loop.advance(4s);
  EXPECT_EQ(leases->deadline(), due(granted + 8s));
  EXPECT_EQ(renewed, told + 1) << "once for each question";
  EXPECT_EQ(wire.sent(StreamKind::keep_alive), 2u);
  EXPECT_TRUE(lost.empty());
}

// ---- leases without keys

TEST_F(EtcdKeepaliveAnswersTest, LeaseWithoutKeysDoesNotShortenTheSession) {
  const auto first = key();
  for (int n = 1; n < 1'000; ++n) key();
  const auto second = key();
  ASSERT_NE(second, first);
  wire.swallow = [&](std::size_t, StreamKind flow, const Message& message) {
    return flow == StreamKind::keep_alive &&
           static_cast<const etcdpb::LeaseKeepAliveRequest&>(message).id() == second;
  };
  loop.advance(7s);
  EXPECT_LT(leases->deadline(), loop.now() + 5s) << "it has a key, and was not renewed";
  loop.step([&] { leases->key_gone(second); });
  EXPECT_GT(leases->deadline(), loop.now() + 10s) << "the first was renewed";
  EXPECT_TRUE(lost.empty());
}

TEST_F(EtcdKeepaliveAnswersTest, LeasesWithoutKeysCountWhereThereAreNoOthers) {
  const Time granted = loop.now();
  room();
  EXPECT_EQ(leases->deadline(), due(granted));
  wire.silence(0), wire.silence(1), wire.silence(2);
  loop.advance(10s);
  EXPECT_EQ(leases->deadline(), due(granted));
}

// ---- watches

class EtcdWatchLifeTest : public EtcdWatchesFixture {};

// A busy member answers the first create after 1.9 s and the second one after 3 s. The first watch
// is cancelled before its answer, but the answer proves that the member works.
TEST_F(EtcdWatchLifeTest, AnswerToACancelledWatchIsASignOfLife) {
  const auto one = etcd.put("one");
  const auto two = etcd.put("two");
  wire.stream_latency = [n = 0]() mutable -> Nanos {
    const Nanos latencies[] = {1ms, 1ms, 1'900ms, 3s};  // two creates, two answers
    return n < 4 ? latencies[n++] : 1ms;
  };
  WatchId unwanted = WatchId::none;
  int news = 0;
  loop.step([&] {
    unwanted = watches->watch({"one", one, etcd.revision()}, [](const WatchNews&) {});
    watches->watch({"two", two, etcd.revision()}, [&](const WatchNews&) { ++news; });
  });
  loop.advance(10ms);
  loop.step([&] { watches->unwatch(unwanted); });
  loop.advance(3'100ms);
  EXPECT_EQ(link->current(), 0u);
  EXPECT_EQ(wire.path(0).renewed, 0) << "it was taken for silent";
  etcd.remove("two");
  loop.advance(10ms);
  EXPECT_EQ(news, 1);
}

}  // namespace
}  // namespace baton::etcd
