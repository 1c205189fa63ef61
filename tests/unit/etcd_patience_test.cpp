// Setting the wall clock back stops the timers of gRPC, so its calls do not time out. The link then
// ends the calls itself.
#include "etcd_link_rig.h"

namespace baton::etcd {
namespace {

using namespace std::chrono_literals;

class EtcdPatienceTest : public EtcdLinkTest {
 protected:
  EtcdPatienceTest() { wire.timers_stand = true; }
};

TEST_F(EtcdPatienceTest, CallThatNeverEndsIsLostInTime) {
  make();
  wire.fate = [](const FakeAsked&) { return lost_request(); };
  const auto heard = txn();
  loop.advance(2s);
  EXPECT_EQ(heard->statuses, std::vector{Status::lost}) << "it may have happened";
  EXPECT_EQ(link_->current(), 1u) << "another one is asked next";
  wire.fate = nullptr;
  const auto next = range();
  loop.advance(5ms);
  EXPECT_TRUE(ok(next));
}

TEST_F(EtcdPatienceTest, AnswerAfterOurOwnEndCountsForNothing) {
  make();
  wire.fate = [](const FakeAsked&) { return FakeFate{.back = 10s}; };
  const auto heard = range();
  loop.advance(5s);
  ASSERT_EQ(heard->statuses, std::vector{Status::lost});
  loop.advance(10s);
  EXPECT_EQ(heard->statuses.size(), 1u) << "answered twice";
}

TEST_F(EtcdPatienceTest, AnswerInTimeLeavesNoEndBehind) {
  make();
  const auto heard = range();
  loop.advance(1min);
  EXPECT_TRUE(ok(heard));
  EXPECT_TRUE(left.empty());
}

TEST_F(EtcdPatienceTest, AuthenticationThatNeverEndsIsAskedForElsewhere) {
  etcd.require_users();
  make("ann");
  wire.fate = [](const FakeAsked& asked) {
    return asked.endpoint == 0 ? lost_request() : FakeFate{};
  };
  const auto heard = txn();
  loop.advance(2s);
  EXPECT_EQ(heard->statuses, std::vector{Status::not_sent});
  EXPECT_EQ(wire.count(Call::txn), 0u);
  const auto next = range();
  loop.advance(20ms);
  EXPECT_TRUE(ok(next)) << "nobody may wait for a token that does not come";
}

TEST_F(EtcdPatienceTest, LinkThatIsGoneIsNotTold) {
  make();
  wire.fate = [](const FakeAsked& asked) {
    return asked.call == Call::txn ? lost_request() : FakeFate{.back = 5s};
  };
  const auto never = txn();
  const auto late = range();
  loop.step([&] { link_.reset(); });
  loop.advance(1min);
  EXPECT_TRUE(never->statuses.empty());
  EXPECT_TRUE(late->statuses.empty());
}

TEST_F(EtcdPatienceTest, RoomOfCallsThatNeverEndIsGivenToOthers) {
  make();
  wire.fate = [](const FakeAsked&) { return lost_request(); };
  std::vector<std::shared_ptr<Heard>> all;
  for (int n = 0; n < 600; ++n) all.push_back(range());
  loop.advance(1min);
  for (const auto& heard : all) EXPECT_EQ(heard->statuses.size(), 1u);
  EXPECT_EQ(wire.under_way(), 0u) << "what was given up was not cancelled";
  EXPECT_LE(wire.most_under_way(), 2 * 256u)
      << "each is on its way for a moment after it was given up";
}

}  // namespace
}  // namespace baton::etcd
