// Requests of operators and holders to the ZooKeeper store end with their callers.
#include "fake_zk_client.h"

#include <gtest/gtest.h>
#include <zookeeper/zookeeper.h>

#include <string>
#include <vector>

namespace baton::zk {
namespace {

using namespace std::chrono_literals;

class ZkPatienceTest : public ::testing::Test {
 protected:
  ZkPatienceTest() {
    ann.settled(ann.join(1));
    ann.wire().take_log();
  }
  void wait_only(Nanos time) {
    loop.step([&] { ann.session().wanted_until(loop.now() + time); });
  }
  std::string entry() { return entry_prefix(ann.id(1)) + "0000000000"; }
  struct Questions {
    AskedPtr<LockSnapshot> inspected;
    AskedPtr<std::vector<std::string>> listed;
    AskedPtr<bool> evicted;
    AskedPtr<bool> verified;
    int answers() const {
      return inspected->answers + listed->answers + evicted->answers + verified->answers;
    }
  };
  // Sends each request for a caller that waits for five seconds.
  Questions ask_all() {
    Questions all;
    wait_only(5s);
    all.inspected = ann.inspect();
    wait_only(5s);
    all.listed = ann.list();
    wait_only(5s);
    all.evicted = ann.evict(entry());
    wait_only(5s);
    all.verified = ann.verify(1);
    return all;
  }
  static void expect_late(const Questions& all) {
    ASSERT_EQ(all.answers(), 4);
    for (const Error* error : {&all.inspected->error(), &all.listed->error(), &all.evicted->error(),
                               &all.verified->error()}) {
      EXPECT_EQ(error->errc(), Errc::timeout) << error->what();
    }
  }
  // Returns what was sent, except heartbeats.
  Texts others() {
    Texts all;
    for (const auto& request : ann.wire().take_log()) {
      if (request.path != kMissingNode && request.path != "/") all.push_back(text(request));
    }
    return all;
  }

  ManualLoop loop;
  FakeZk zk{loop};
  FakeZkClient ann{zk};
};

TEST_F(ZkPatienceTest, QuestionsEndWithTheirCallersWhileThereIsNoConnection) {
  ann.wire().cut();
  const auto all = ask_all();
  loop.advance(4900ms);
  EXPECT_EQ(all.answers(), 0);
  loop.advance(200ms);
  expect_late(all);
  ann.wire().connect();
  ann.wire().settle();
  loop.advance(2s);
  ann.wire().settle();
  EXPECT_EQ(others(), Texts{}) << "nothing is done for callers that have left";
  EXPECT_NE(zk.find("/app/job/" + entry()), nullptr);
}

TEST_F(ZkPatienceTest, QuestionsEndWithTheirCallersWhenTheConnectionBreaksUnderThem) {
  const auto all = ask_all();
  ann.wire().cut();  // no server has received them, so they would be sent again
  EXPECT_EQ(all.answers(), 0);
  loop.advance(5100ms);
  expect_late(all);
  ann.wire().take_log();
  ann.wire().connect();
  ann.wire().settle();
  EXPECT_EQ(others(), Texts{});
  EXPECT_NE(zk.find("/app/job/" + entry()), nullptr);
}

// A request that waits for a retry is not sent after its caller has left.
TEST_F(ZkPatienceTest, QuestionsThatAServerIsTooBusyForEndWithTheirCallers) {
  zk.refuse = [](const Request& request) {
    const bool beat = request.path == kMissingNode || request.path == "/";
    return beat ? int{ZOK} : int{ZTHROTTLEDOP};
  };
  const auto all = ask_all();
  for (int n = 0; n < 52; ++n) {
    ann.wire().settle();
    loop.advance(100ms);
  }
  expect_late(all);
  zk.refuse = nullptr;
  ann.wire().take_log();
  for (int n = 0; n < 20; ++n) {
    ann.wire().settle();
    loop.advance(100ms);
  }
  EXPECT_EQ(others(), Texts{});
  EXPECT_NE(zk.find("/app/job/" + entry()), nullptr);
}

TEST_F(ZkPatienceTest, CallersThatDoNotSayHowLongTheyWaitAreBoundedToo) {
  const auto asked = ann.inspect();
  for (int n = 0; n < 13; ++n) {
    ann.wire().cut();
    ann.wire().connect();
    loop.advance(5s);
  }
  ASSERT_TRUE(asked->got);
  EXPECT_EQ(asked->error().errc(), Errc::connection_failed);
}

// An answer that comes after the end is dropped, and the caller gets no second answer.
TEST_F(ZkPatienceTest, AnswersAfterTheEndAreDropped) {
  const auto all = ask_all();
  while (ann.wire().deliver_request()) {
  }
  loop.advance(5100ms);
  expect_late(all);
  ann.wire().settle();
  loop.advance(5s);
  EXPECT_EQ(all.answers(), 4);
}

TEST_F(ZkPatienceTest, ADeadlineThatHasPassedSendsNothing) {
  wait_only(-1ms);
  const auto evicted = ann.evict(entry());
  loop.advance(1ms);
  ASSERT_TRUE(evicted->got);
  EXPECT_EQ(others(), Texts{});
  // The deadline does not apply to the next caller.
  EXPECT_TRUE(ann.settled(ann.evict(entry()))->value());
}

TEST_F(ZkPatienceTest, ADestroyedSessionGivesNoAnswer) {
  const auto all = ask_all();
  ann.destroy();
  loop.advance(10s);
  EXPECT_EQ(all.answers(), 0);
}

// The outbox checks whether a request is still wanted right before it sends the request.
TEST_F(ZkPatienceTest, OutboxDropsWhatIsNoLongerWanted) {
  Outbox outbox;
  bool wanted = true;
  int answers = 0;
  const auto ask = [&] {
    outbox.ask(
        {Request::Kind::sync, "/x", {}}, [&](Reply&, std::uint64_t) { ++answers; },
        [&] { return wanted; });
  };
  struct Nowhere final : Transport {
    void send(const Request&, ReplyHandler) override { ++sent; }
    bool provably_disconnected() const noexcept override { return false; }
    void close(Task) override {}
    int sent = 0;
  } line;
  outbox.attach(&line);
  ask();
  wanted = false;
  outbox.connected();
  EXPECT_EQ(line.sent, 0);
  wanted = true;
  ask();
  EXPECT_EQ(line.sent, 1);
  EXPECT_EQ(answers, 0);
}

TEST_F(ZkPatienceTest, ListWithoutARootDoesNotReadTheTreesOfOthersWithoutEnd) {
  FakeZkClient bob(zk, {.root = "", .client_id = "BBBBBBBB", .most_strange = 20});
  bob.settled(bob.join(1, "mine/job"));
  for (int n = 0; n < 300; ++n) zk.put("/kafka/topics/t" + std::to_string(n));
  const auto listed = bob.settled(bob.list());
  ASSERT_FALSE(listed->ok());
  EXPECT_EQ(listed->error().errc(), Errc::store_error);
  EXPECT_NE(std::string(listed->error().what()).find("prefix"), std::string::npos);
  EXPECT_LT(bob.wire().take_log().size(), 200u) << "it went on reading";
  EXPECT_EQ(bob.settled(bob.list("mine/"))->value(), Texts{"mine/job"}) << "the way out";
}

TEST_F(ZkPatienceTest, ListBelowARootReadsAllOfIt) {
  FakeZkClient bob(zk, {.root = "/app", .client_id = "BBBBBBBB", .most_strange = 20});
  for (int n = 0; n < 50; ++n) zk.put("/app/empty" + std::to_string(n));
  EXPECT_EQ(bob.settled(bob.list())->value(), Texts{"job"});
}

}  // namespace
}  // namespace baton::zk
