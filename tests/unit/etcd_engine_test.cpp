// The engine on top of the etcd session, one case per test.
#include "fake_etcd_process.h"

#include <gtest/gtest.h>

#include <string>

namespace baton::etcd {
namespace {

using namespace std::chrono_literals;

class EtcdEngineTest : public ::testing::Test {
 protected:
  EtcdEngineTest() { pass(100ms); }
  void pass(Nanos span) {
    for (Nanos done{}; done < span; done += 10ms) {
      loop.advance(10ms);
      judge.check();
      ann.sort_out();
      bob.sort_out();
    }
  }
  std::shared_ptr<Hold> hold(FakeEtcdProcess& process, const std::string& lock = "a") {
    process.acquire(lock, std::nullopt);
    pass(100ms);
    EXPECT_EQ(process.mine.size(), 1u);
    return process.mine.at(0);
  }

  ManualLoop loop;
  FakeEtcd etcd{loop, 3};
  HoldJudge judge;
  FakeEtcdProcess ann{etcd, judge, 0};
  FakeEtcdProcess bob{etcd, judge, 1};
};

TEST_F(EtcdEngineTest, ReleaseHandsOverWithinThreeHops) {
  const auto held = hold(ann);
  bob.acquire("a", std::nullopt);
  pass(300ms);
  EXPECT_EQ(bob.tries.size(), 1u);
  ann.release(held);
  loop.advance(5ms);  // 1 ms each: the removal, the event, the look and its answer
  bob.sort_out();
  EXPECT_EQ(bob.mine.size(), 1u);
}

TEST_F(EtcdEngineTest, EvictedHoldIsLostWithinASecond) {
  const auto held = hold(ann);
  pass(500ms);
  judge.evicted.insert(held->token());
  loop.step([&] { etcd.remove(etcd.keys("/app/a/").at(0)); });
  pass(1s);
  EXPECT_FALSE(held->valid());
  EXPECT_EQ(held->lost_reason(), Errc::evicted);
}

TEST_F(EtcdEngineTest, RevokedLeaseEndsTheSessionAndWaitersJoinAgain) {
  const auto held = hold(ann);
  bob.acquire("a", std::nullopt);
  pass(300ms);
  const auto lease = etcd.find(etcd.keys("/app/a/").at(1))->lease();
  loop.step([&] { etcd.revoke(lease); });  // bob's lease
  pass(1s);
  EXPECT_TRUE(held->valid());
  EXPECT_EQ(bob.tries.size(), 1u) << "still waiting";
  EXPECT_EQ(etcd.keys("/app/a/").size(), 2u) << "at the end of the queue";
  ann.release(held);
  pass(100ms);
  EXPECT_EQ(bob.mine.size(), 1u);
}

TEST_F(EtcdEngineTest, HoldIsLostBeforeTheStoreGivesItAway) {
  const auto held = hold(ann);
  bob.acquire("a", std::nullopt);
  for (const std::size_t i : {0u, 1u, 2u}) ann.wire.silence(i);
  while (bob.mine.empty() && loop.now() < held->since() + 10s) {
    EXPECT_TRUE(held->valid() || loop.now() >= held->lease().deadline());
    pass(10ms);
  }
  EXPECT_EQ(bob.mine.size(), 1u);
  EXPECT_FALSE(held->valid());
  for (const std::size_t i : {0u, 1u, 2u}) ann.wire.silence(i, false);
  pass(5s);
  EXPECT_FALSE(held->valid()) << "lost is lost";
  EXPECT_TRUE(bob.mine.at(0)->valid());
}

TEST_F(EtcdEngineTest, TimeoutOfALostJoinLeavesNoTicketBehind) {
  for (const bool late : {false, true}) {
    ann.wire.fate = [late](const FakeAsked& asked) {
      if (asked.call != Call::txn) return FakeFate{};
      return late ? lands_after(1'500ms) : lost_answer();
    };
    ann.acquire("a", 300ms);
    pass(400ms);
    EXPECT_TRUE(ann.tries.empty());
    ann.wire.fate = nullptr;
    pass(10s);
    EXPECT_TRUE(etcd.keys().empty());
    EXPECT_TRUE(ann.engine().idle());
    EXPECT_EQ(etcd.leases().size(), 2u);
    EXPECT_EQ(etcd.watchers(), 0u);
  }
}

TEST_F(EtcdEngineTest, ReleaseIsRepeatedUntilTheStoreHasHeardOfIt) {
  const auto held = hold(ann);
  ann.wire.fate = [](const FakeAsked& asked) {
    return asked.call == Call::txn ? lost_request() : FakeFate{};
  };
  ann.release(held);
  pass(3s);
  EXPECT_EQ(etcd.keys("/app/a/").size(), 1u);
  ann.wire.fate = nullptr;
  pass(5s);
  EXPECT_TRUE(etcd.keys("/app/a/").empty());
  EXPECT_TRUE(ann.engine().idle());
}

TEST_F(EtcdEngineTest, MissedEventIsFoundByTheBackstop) {
  const auto held = hold(ann);
  bob.wire.swallow = [](std::size_t, StreamKind flow, const Message&) {
    return flow == StreamKind::watch;
  };
  bob.acquire("a", std::nullopt);
  pass(300ms);
  ann.release(held);
  pass(2s);
  EXPECT_EQ(bob.mine.size(), 1u);
}

TEST_F(EtcdEngineTest, CloseFreesEverything) {
  hold(ann);
  bool closed = false;
  loop.step([&] { ann.engine().close([&](const Result<Done>&) { closed = true; }); });
  pass(100ms);
  EXPECT_TRUE(closed);
  EXPECT_TRUE(etcd.keys().empty());
  EXPECT_EQ(etcd.leases().size(), 1u) << "the other's";
}

TEST_F(EtcdEngineTest, RestoredStoreLosesTheHoldsAndBeginsAnew) {
  for (int n = 0; n < 10; ++n) loop.step([&] { etcd.put("x"); });
  const auto held = hold(ann);
  loop.step([&] { etcd.set_back(3); });
  pass(5s);
  EXPECT_FALSE(held->valid());
  EXPECT_EQ(held->lost_reason(), Errc::store_changed);
  judge.tokens.clear();  // tokens start again with a restored store, as the contract says
  hold(ann);
}

}  // namespace
}  // namespace baton::etcd
