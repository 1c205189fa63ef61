#include "zk/outbox.h"

#include "fake_zk.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace baton::zk {
namespace {

// An outbox that is alone on its transport.
class ZkOutboxTest : public ::testing::Test, protected TransportListener {
 protected:
  ZkOutboxTest() : line(zk.make_transport(*this)), wire(zk.wire(0)) { outbox->attach(line.get()); }

  void transport_connected(const Connection&) override { outbox->connected(); }
  void transport_disconnected() override { outbox->disconnected(); }
  void transport_ended(Status, const std::string&) override {}
  void transport_event(NodeEvent, const std::string&) override {}

  // Reads "/<name>" and records the answer as "<name> <status> <connection>".
  std::uint64_t ask(const std::string& name) {
    std::uint64_t id = 0;
    loop.step([&] {
      id = outbox->ask({Request::Kind::get, "/" + name, {}},
                       [this, name](Reply& reply, std::uint64_t connection) {
                         answers.push_back(name +
                                           (reply.status == Status::lost ? " lost " : " ok ") +
                                           std::to_string(connection));
                       });
    });
    return id;
  }
  Texts sent() { return texts(wire.take_log()); }

  ManualLoop loop;
  FakeZk zk{loop};
  std::unique_ptr<Outbox> outbox = std::make_unique<Outbox>();
  std::unique_ptr<Transport> line;
  FakeWire& wire;
  std::vector<std::string> answers;
};

TEST_F(ZkOutboxTest, KeepsWhatIsAskedUntilThereIsAConnection) {
  EXPECT_FALSE(outbox->open());
  EXPECT_EQ(outbox->connection(), 0u);
  ask("a");
  ask("b");
  EXPECT_EQ(sent(), Texts{});
  EXPECT_EQ(answers, Texts{}) << "what was never sent is not lost";
  wire.connect();
  EXPECT_TRUE(outbox->open());
  EXPECT_EQ(outbox->connection(), 1u);
  EXPECT_EQ(sent(), (Texts{"get /a", "get /b"}));
  wire.settle();
  EXPECT_EQ(answers, (Texts{"a ok 1", "b ok 1"}));
}

TEST_F(ZkOutboxTest, SendsAtOnceAndInOrderWhileConnected) {
  wire.connect();
  ask("a");
  EXPECT_EQ(sent(), Texts{"get /a"});
  ask("b");
  ask("c");
  EXPECT_EQ(sent(), (Texts{"get /b", "get /c"})) << "nobody waits for an answer";
  wire.settle();
  EXPECT_EQ(answers, (Texts{"a ok 1", "b ok 1", "c ok 1"}));
}

TEST_F(ZkOutboxTest, WhatWasUnderWayIsLostAndWhatCameLaterIsKept) {
  wire.connect();
  ask("before");
  sent();
  wire.cut();
  ask("between");
  EXPECT_EQ(answers, Texts{"before lost 1"});
  wire.connect();
  EXPECT_EQ(sent(), Texts{"get /between"}) << "the outbox itself sends nothing twice";
  wire.settle();
  EXPECT_EQ(answers, (Texts{"before lost 1", "between ok 2"}));
}

TEST_F(ZkOutboxTest, ConnectionsAreNumberedAndAnswersNameTheirs) {
  for (std::uint64_t n = 1; n <= 3; ++n) {
    wire.connect();
    EXPECT_EQ(outbox->connection(), n);
    ask("x");
    wire.settle();
    EXPECT_EQ(answers.back(), "x ok " + std::to_string(n));
    wire.cut();
    EXPECT_EQ(outbox->connection(), n) << "the last one, until there is another";
  }
}

TEST_F(ZkOutboxTest, AtMost1024AreUnderWay) {
  wire.connect();
  for (int i = 0; i < 3'000; ++i) ask(std::to_string(i));
  EXPECT_EQ(Outbox::kUnderWay, 1'024u);
  EXPECT_EQ(wire.requests(), 1'024u);
  ASSERT_TRUE(wire.deliver_request());
  EXPECT_EQ(wire.requests(), 1'023u) << "only an answer makes room";
  ASSERT_TRUE(wire.deliver_answer());
  EXPECT_EQ(wire.requests(), 1'024u);
  wire.settle();
  ASSERT_EQ(answers.size(), 3'000u);
  const auto log = sent();
  for (std::size_t i = 0; i < log.size(); ++i) {
    ASSERT_EQ(log[i], "get /" + std::to_string(i));
    ASSERT_EQ(answers[i], std::to_string(i) + " ok 1");
  }
}

TEST_F(ZkOutboxTest, LostAnswersMakeRoomToo) {
  wire.connect();
  for (int i = 0; i < 1'500; ++i) ask(std::to_string(i));
  wire.cut();
  EXPECT_EQ(answers.size(), 1'024u) << "the others were never sent";
  sent();
  wire.connect();
  EXPECT_EQ(wire.requests(), 1'500u - 1'024u);
  for (int i = 1'500; i < 4'000; ++i) ask(std::to_string(i));
  EXPECT_EQ(wire.requests(), 1'024u);
  wire.settle();
  EXPECT_EQ(answers.size(), 4'000u);
}

TEST_F(ZkOutboxTest, RecallTakesBackWhatWasNotSent) {
  const auto a = ask("a");
  const auto b = ask("b");
  const auto c = ask("c");
  EXPECT_TRUE(outbox->recall(b));
  EXPECT_FALSE(outbox->recall(b)) << "only once";
  EXPECT_FALSE(outbox->recall(0));
  EXPECT_FALSE(outbox->recall(c + 1));
  wire.connect();
  EXPECT_EQ(sent(), (Texts{"get /a", "get /c"}));
  EXPECT_FALSE(outbox->recall(a)) << "under way";
  wire.settle();
  EXPECT_EQ(answers, (Texts{"a ok 1", "c ok 1"}));
  EXPECT_FALSE(outbox->recall(a)) << "answered";
}

TEST_F(ZkOutboxTest, RecallWorksForWhatWaitsForRoom) {
  wire.connect();
  std::uint64_t last = 0;
  for (int i = 0; i < 1'026; ++i) last = ask(std::to_string(i));
  EXPECT_FALSE(outbox->recall(last - 2));
  EXPECT_TRUE(outbox->recall(last - 1));
  wire.settle();
  EXPECT_EQ(answers.size(), 1'025u);
  EXPECT_EQ(answers.back(), "1025 ok 1");
}

TEST_F(ZkOutboxTest, AnAnswerMayAskAgain) {
  wire.connect();
  loop.step([&] {
    outbox->ask({Request::Kind::get, "/a", {}}, [this](Reply&, std::uint64_t) {
      outbox->ask({Request::Kind::get, "/b", {}},
                  [this](Reply&, std::uint64_t) { answers.push_back("b"); });
    });
  });
  wire.cut();
  EXPECT_EQ(answers, Texts{}) << "asked after the connection broke: kept";
  wire.connect();
  wire.settle();
  EXPECT_EQ(answers, Texts{"b"});
}

TEST_F(ZkOutboxTest, NothingIsAnsweredAfterItsEnd) {
  wire.connect();
  ask("a");
  outbox.reset();
  wire.deliver_request();
  wire.deliver_answer();
  EXPECT_EQ(answers, Texts{});
}

TEST_F(ZkOutboxTest, AnAnswerMayEndIt) {
  wire.connect();
  loop.step([&] {
    outbox->ask({Request::Kind::get, "/a", {}}, [this](Reply&, std::uint64_t) { outbox.reset(); });
  });
  ask("b");
  wire.settle();
  EXPECT_EQ(answers, Texts{});
}

}  // namespace
}  // namespace baton::zk
