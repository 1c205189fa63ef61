// baton and Apache Curator, and baton and kazoo, on one lock of a real ZooKeeper server, step by
// step. Pairs of peers without baton run through the same tests: they show that what is asked for
// is what the peers do among themselves.
#include "interop/contender.h"
#include "interop/zk_fixture.h"
#include "support/eventually.h"
#include "support/zk_server.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace baton::interop {
namespace {

using test::eventually;

// ---- two libraries, step by step

struct Pair {
  Library one;
  Library other;
};

std::string text_of(const Pair& pair) {
  return std::string(name_of(pair.one)) + "And" + std::string(name_of(pair.other));
}
void PrintTo(const Pair& pair, std::ostream* out) { *out << text_of(pair); }

class ZkPair : public ZkInteropTest, public ::testing::WithParamInterface<Pair> {
 protected:
  void SetUp() override {
    ZkInteropTest::SetUp();
    if (HasFatalFailure()) return;
    place_.persistent_parents = GetParam().other == Library::kazoo;
    onlooker_ = start(Library::kazoo, "onlooker");  // looks only: it may do so with Curator, too
    one_ = start(GetParam().one, "one");
    other_ = start(GetParam().other, "other");
  }

  std::unique_ptr<Contender> onlooker_, one_, other_;
};

void keeps_out(Contender& holder, Contender& other) {
  const std::string who = holder.who() + " holds, " + other.who() + " asks";
  ASSERT_EQ(holder.ask("try"), "GRANTED") << who;
  const auto token = holder.token();
  EXPECT_EQ(other.ask("try"), "REFUSED") << who;
  const auto before = monotonic_now();
  EXPECT_EQ(other.ask("acquire 300"), "REFUSED") << who;
  EXPECT_GE(other.stamp() - before, std::chrono::nanoseconds(300ms).count()) << who;
  EXPECT_EQ(holder.ask("release"), "RELEASED") << who;
  ASSERT_EQ(other.ask("acquire 10000"), "GRANTED") << who;
  EXPECT_GT(other.token(), token) << who;
  EXPECT_EQ(other.ask("release"), "RELEASED") << who;
}

TEST_P(ZkPair, TheHolderKeepsTheOtherOut) {
  keeps_out(*one_, *other_);
  keeps_out(*other_, *one_);
  EXPECT_TRUE(eventually("no entry is left", [&] { return queue(*onlooker_).empty(); }));
}

TEST_P(ZkPair, ReleaseWakesTheOther) {
  for (auto [holder, waiter] : {std::pair(one_.get(), other_.get()), {other_.get(), one_.get()}}) {
    ASSERT_EQ(holder->ask("try"), "GRANTED") << holder->who();
    const auto token = holder->token();
    EXPECT_EQ(queue(*onlooker_), std::vector{token}) << "the token is the czxid of the entry";
    wait_behind(1, *waiter, *onlooker_);
    EXPECT_EQ(queue(*onlooker_).front(), token);
    EXPECT_EQ(holder->ask("release"), "RELEASED");
    expect_granted(*waiter);
    EXPECT_EQ(queue(*onlooker_), std::vector{waiter->token()});
    EXPECT_EQ(waiter->ask("release"), "RELEASED");
  }
}

TEST_P(ZkPair, WhoWaitsFirstIsServedFirst) {
  const auto holder = start(GetParam().one, "holder");
  for (auto [first, second] : {std::pair(one_.get(), other_.get()), {other_.get(), one_.get()}}) {
    ASSERT_EQ(holder->ask("try"), "GRANTED");
    wait_behind(1, *first, *onlooker_);
    wait_behind(2, *second, *onlooker_);
    if (GetParam().one == Library::baton) {
      EXPECT_EQ(queue(*holder), queue(*onlooker_)) << "both must see the same queue";
    }
    EXPECT_EQ(holder->ask("release"), "RELEASED");
    expect_granted(*first);
    const auto token = first->token();
    EXPECT_TRUE(second->silent()) << second->who() << " came in beside " << first->who();
    EXPECT_EQ(first->ask("release"), "RELEASED");
    expect_granted(*second);
    EXPECT_GT(second->token(), token);
    EXPECT_EQ(second->ask("release"), "RELEASED");
  }
}

// Who stands behind it must look again, find the holder, and go on waiting.
TEST_P(ZkPair, AWaiterThatLeavesMakesNobodyAHolder) {
  const auto holder = start(GetParam().one, "holder");
  for (const bool killed : {false, true}) {
    for (auto [leaver, last] : {std::pair(&other_, &one_), {&one_, &other_}}) {
      const std::string who = (*leaver)->who() + (killed ? " is killed" : " gives up");
      ASSERT_EQ(holder->ask("try"), "GRANTED") << who;
      wait_behind(1, **leaver, *onlooker_, killed ? "wait" : "acquire 3000");
      wait_behind(2, **last, *onlooker_);
      if (killed) {
        (*leaver)->kill_hard();
        *leaver = start(leaver == &one_ ? GetParam().one : GetParam().other, (*leaver)->who());
      } else {
        const auto words = (*leaver)->answer();
        EXPECT_EQ(words.empty() ? "nothing" : words[0], "REFUSED") << who;
      }
      EXPECT_TRUE(eventually(who, [&] { return queue(*onlooker_).size() == 2; }));
      const auto before = monotonic_now();
      EXPECT_EQ(holder->ask("release"), "RELEASED") << who;
      expect_granted(**last);
      EXPECT_GT((*last)->stamp(), before) << who << ", and the last is granted beside the holder";
      EXPECT_EQ((*last)->ask("release"), "RELEASED") << who;
    }
  }
}

TEST_P(ZkPair, AKilledHolderIsFollowedWhenItsSessionEnds) {
  for (auto [victim, heir] : {std::pair(&other_, &one_), {&one_, &other_}}) {
    ASSERT_EQ((*victim)->ask("try"), "GRANTED") << (*victim)->who();
    wait_behind(1, **heir, *onlooker_);
    const auto killed = monotonic_now();
    (*victim)->kill_hard();
    expect_granted(**heir);
    // The session counts from its last contact, at most a heartbeat (a third of it) before the
    // kill, and ends up to 1.5 ticks late. The rest is for a slow machine.
    const auto took = std::chrono::nanoseconds((*heir)->stamp() - killed);
    EXPECT_GE(took, kSession / 2) << "too early: the holder had not lost its session";
    EXPECT_LE(took, kSession + kTick * 3 / 2 + 5s);
    EXPECT_EQ((*heir)->ask("release"), "RELEASED");
    *victim = start(victim == &one_ ? GetParam().one : GetParam().other, (*victim)->who());
  }
}

INSTANTIATE_TEST_SUITE_P(WithBaton, ZkPair,
                         ::testing::Values(Pair{Library::baton, Library::curator},
                                           Pair{Library::baton, Library::kazoo}),
                         of_param);
INSTANTIATE_TEST_SUITE_P(PeersAlone, ZkPair,
                         ::testing::Values(Pair{Library::curator, Library::curator},
                                           Pair{Library::kazoo, Library::kazoo}),
                         of_param);

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
  // One of our own, which looks for empty containers often; stock: once a minute.
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

// kazoo looks for the directory once, and does not make it again.
TEST_F(ZkReaper, PersistentParentsStayForKazoo) {
  place_.persistent_parents = true;
  const auto baton = start(Library::baton, "baton");
  const auto kazoo = start(Library::kazoo, "kazoo");
  ASSERT_NO_FATAL_FAILURE(one_turn(*baton));  // it makes the directory
  ASSERT_NO_FATAL_FAILURE(one_turn(*kazoo));
  // Another directory, a container, is removed: the reaper has passed.
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
