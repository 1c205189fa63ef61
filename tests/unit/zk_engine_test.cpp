// Which events end a hold, and which do not, with the engine on a ZooKeeper session.
#include "fake_zk_process.h"

#include <gtest/gtest.h>

#include <string>

namespace baton::zk {
namespace {

using namespace std::chrono_literals;

class ZkEngineTest : public ::testing::Test {
 protected:
  ZkEngineTest() {
    zk.put("/app/job");
    zk.set_counter("/app/job", 5);
    settle();
    ann.acquire("job", std::nullopt);
    settle();
    ann.sort_out();
    loop.advance(150ms);  // its own ticket is watched by now
    settle();
    wire().take_log();
  }
  FakeWire& wire() { return zk.wire(0); }
  void settle() {
    if (!wire().connected()) wire().connect();
    wire().settle();
  }
  // Lets time pass with answered heartbeats. The holder looks from time to time.
  void pass(Nanos time) {
    for (Nanos passed{}; passed < time; passed += 100ms) {
      loop.advance(100ms);
      wire().settle();
    }
    ann.sort_out();
  }

  ManualLoop loop;
  FakeZk zk{loop};
  HoldJudge judge;
  FakeZkProcess ann{zk, judge, 0, Watches::kBudget};
};

TEST_F(ZkEngineTest, TicketThatIsSeenAheadEndsNoHold) {
  ASSERT_EQ(ann.mine.size(), 1u);
  const auto hold = ann.mine.at(0);
  zk.put("/app/job/other-lock-0000000001", FakeNode::Kind::entry, {}, 77);
  const auto lists = [&] {
    int n = 0;
    for (const auto& request : wire().take_log()) n += request.kind == Request::Kind::children;
    return n;
  };
  lists();
  wire().cut();
  wire().connect();
  pass(10s);
  EXPECT_GE(lists(), 2) << "it has looked";
  EXPECT_TRUE(hold->valid());
}

TEST_F(ZkEngineTest, LossOfItsOwnTicketEndsAHoldBehindASync) {
  ASSERT_EQ(ann.mine.size(), 1u);
  const auto hold = ann.mine.at(0);
  judge.evicted.insert(hold->token());
  zk.remove(zk.entries_of(wire().session()).at(0));
  wire().settle();
  EXPECT_FALSE(hold->valid());
  EXPECT_EQ(hold->lost_reason(), Errc::evicted);
  const auto sent = texts(wire().take_log());
  EXPECT_EQ((Texts{sent.begin(), sent.begin() + 3}),
            (Texts{"children /app/job", "sync /app/job", "children /app/job"}));
}

}  // namespace
}  // namespace baton::zk
