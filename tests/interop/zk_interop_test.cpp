// baton and its ZooKeeper peers (Apache Curator, kazoo) use one lock of a real ZooKeeper server in
// pairs, step by step. Pairs of peers without baton run through the same tests, to show that the
// peers behave like this among themselves.
#include "interop/contender.h"
#include "interop/pair.h"
#include "interop/zk_fixture.h"
#include "support/eventually.h"
#include "support/zk_server.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace baton::interop {
namespace {

using test::eventually;

class ZkPair : public PairTest {
 protected:
  ZkPair() : PairTest(kZk) {}
};

TEST_P(ZkPair, TheHolderKeepsTheOtherOut) { the_holder_keeps_the_other_out(); }
TEST_P(ZkPair, ReleaseWakesTheOther) { release_wakes_the_other(); }
TEST_P(ZkPair, WhoWaitsFirstIsServedFirst) { who_waits_first_is_served_first(); }
TEST_P(ZkPair, AWaiterThatLeavesMakesNobodyAHolder) {
  a_waiter_that_leaves_makes_nobody_a_holder();
}
TEST_P(ZkPair, AKilledHolderIsFollowedWhenItsSessionEnds) {
  a_killed_holder_is_followed_when_its_session_ends();
}

INSTANTIATE_TEST_SUITE_P(WithBaton, ZkPair,
                         ::testing::Values(Pair{Library::baton, Library::curator},
                                           Pair{Library::baton, Library::kazoo}),
                         of_param);
INSTANTIATE_TEST_SUITE_P(PeersAlone, ZkPair,
                         ::testing::Values(Pair{Library::curator, Library::curator},
                                           Pair{Library::kazoo, Library::kazoo}),
                         of_param);

class ZkInteropTest : public InteropTest {
 protected:
  ZkInteropTest() : InteropTest(kZk) {}
};

using ZkNeighbours = ZkInteropTest;

TEST_F(ZkNeighbours, OtherChildrenOfTheDirectoryAreIgnored) {
  place_.persistent_parents = true;
  const auto maker = start(Library::kazoo, "maker");
  for (const char* node : {"foo", "config-7", "0000000000", "a-lock-b", "x__lock__"}) {
    ASSERT_EQ(maker->ask(std::string("node ") + node), "MADE") << node;
  }
  const auto one = start(Library::baton, "one");
  const auto other = start(Library::baton, "other");
  keeps_out(*one, *other);
  ASSERT_EQ(one->ask("try"), "GRANTED");
  EXPECT_EQ(queue(*one).size(), 1u) << "only the entry is shown";
  wait_behind(1, *other, *maker);
  EXPECT_EQ(one->ask("release"), "RELEASED");
  expect_granted(*other);
}

// ---- empty directories that the server removes

class ZkReaper : public ZkInteropTest {
 protected:
  // Starts a separate server, which checks for empty containers every 50 ms. The default is once a
  // minute.
  std::string server() override {
    auto options = short_ticks();
    options.jvm = {"-Dznode.container.checkIntervalMs=50"};
    return server_.emplace(options).hosts();
  }

  static void one_turn(Contender& contender) {
    ASSERT_EQ(contender.ask("acquire 10000"), "GRANTED") << contender.who();
    ASSERT_EQ(contender.ask("release"), "RELEASED") << contender.who();
  }

  static ::testing::AssertionResult reaped(Contender& onlooker) {
    return eventually("the server removes the directory",
                      [&] { return onlooker.ask("directory") == "GONE"; });
  }

  std::optional<test::ZkEnsemble> server_;
};

TEST_F(ZkReaper, BatonAndCuratorMakeTheDirectoryAgain) {
  const auto onlooker = start(Library::kazoo, "onlooker");
  const auto baton = start(Library::baton, "baton");
  const auto curator = start(Library::curator, "curator");
  for (int round = 0; round < 3; ++round) {
    ASSERT_NO_FATAL_FAILURE(one_turn(*baton));
    ASSERT_TRUE(reaped(*onlooker));
    ASSERT_NO_FATAL_FAILURE(one_turn(*curator));
    ASSERT_TRUE(reaped(*onlooker));
  }
}

// kazoo checks only once that the directory exists. It does not make the directory again.
TEST_F(ZkReaper, PersistentParentsStayForKazoo) {
  place_.persistent_parents = true;
  const auto baton = start(Library::baton, "baton");
  const auto kazoo = start(Library::kazoo, "kazoo");
  ASSERT_NO_FATAL_FAILURE(one_turn(*baton));  // it makes the directory
  ASSERT_NO_FATAL_FAILURE(one_turn(*kazoo));
  // Waits until the server has removed another directory, a container. So it has also checked the
  // first directory.
  place_.persistent_parents = false;
  place_.name += "-container";
  const auto onlooker = start(Library::kazoo, "onlooker");
  ASSERT_NO_FATAL_FAILURE(one_turn(*start(Library::baton, "other")));
  ASSERT_TRUE(reaped(*onlooker));
  ASSERT_NO_FATAL_FAILURE(one_turn(*kazoo));
  ASSERT_NO_FATAL_FAILURE(one_turn(*baton));
}

}  // namespace
}  // namespace baton::interop
