// baton and its etcd peers (Go's concurrency.Mutex, `etcdctl lock`, the lock service of the server)
// use one lock of a real etcd server in pairs, step by step. Pairs of peers without baton run
// through the same tests, to show that the peers behave like this among themselves.
#include "interop/contender.h"
#include "interop/etcd_fixture.h"
#include "interop/pair.h"
#include "support/eventually.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace baton::interop {
namespace {

using test::eventually;

class EtcdPair : public PairTest {
 protected:
  EtcdPair() : PairTest(kEtcd) {}
};

TEST_P(EtcdPair, TheHolderKeepsTheOtherOut) { the_holder_keeps_the_other_out(); }
TEST_P(EtcdPair, ReleaseWakesTheOther) { release_wakes_the_other(); }
TEST_P(EtcdPair, WhoWaitsFirstIsServedFirst) { who_waits_first_is_served_first(); }
TEST_P(EtcdPair, AWaiterThatLeavesMakesNobodyAHolder) {
  a_waiter_that_leaves_makes_nobody_a_holder();
}
TEST_P(EtcdPair, AKilledHolderIsFollowedWhenItsSessionEnds) {
  a_killed_holder_is_followed_when_its_session_ends();
}

INSTANTIATE_TEST_SUITE_P(WithBaton, EtcdPair,
                         ::testing::Values(Pair{Library::baton, Library::go},
                                           Pair{Library::baton, Library::v3lock},
                                           Pair{Library::baton, Library::etcdctl}),
                         of_param);
INSTANTIATE_TEST_SUITE_P(PeersAlone, EtcdPair,
                         ::testing::Values(Pair{Library::go, Library::v3lock},
                                           Pair{Library::go, Library::etcdctl},
                                           Pair{Library::etcdctl, Library::v3lock}),
                         of_param);

class EtcdInteropTest : public InteropTest {
 protected:
  EtcdInteropTest() : InteropTest(kEtcd) {}
};

using EtcdRoots = EtcdInteropTest;

TEST_F(EtcdRoots, WithoutARootKeysBeginWithTheName) {
  place_.name = place_.root.substr(1) + "/" + place_.name;
  place_.root = "";
  const auto baton = start(Library::baton, "baton");
  for (const auto library : {Library::go, Library::v3lock, Library::etcdctl}) {
    const auto peer = start(library, std::string(name_of(library)));
    keeps_out(*baton, *peer);
    keeps_out(*peer, *baton);
  }
}

// ---- a nested lock, whose keys have the prefix of another lock: only baton tells them apart

class EtcdNested : public EtcdInteropTest {
 protected:
  // More keys than a client requests in a short read. So a short read of the newest keys below the
  // outer prefix can return keys of the nested lock only.
  static constexpr std::size_t kMany = 40;

  void SetUp() override {
    EtcdInteropTest::SetUp();
    if (HasFatalFailure()) return;
    outer_ = inner_ = place_;
    inner_.name += "/nested";
    onlooker_ = start_onlooker();
    place_ = inner_;
    inner_onlooker_ = start_onlooker();
  }

  std::unique_ptr<Contender> start_at(const Place& place, Library library, const std::string& who) {
    place_ = place;
    return start(library, who);
  }

  // Adds entries to the nested lock, until the newest keys below the outer prefix are all entries
  // of the nested lock.
  void fill(Contender& crowd) {
    const auto before = queue(*inner_onlooker_).size();
    ASSERT_EQ(crowd.ask("stand " + std::to_string(kMany)), "STANDING");
    EXPECT_TRUE(eventually("all stand in the nested queue",
                           [&] { return queue(*inner_onlooker_).size() == before + kMany; }));
  }

  Place outer_, inner_;
  std::unique_ptr<Contender> onlooker_, inner_onlooker_;
};

class EtcdNestedBefore : public EtcdNested, public ::testing::WithParamInterface<Library> {};

TEST_P(EtcdNestedBefore, AHolderIsSeenBehindManyNewerEntriesOfANestedLock) {
  const auto holder = start_at(outer_, GetParam(), "holder");
  const auto waiter = start_at(outer_, Library::baton, "waiter");
  const auto crowd = start_at(inner_, Library::baton, "crowd");
  ASSERT_EQ(holder->ask("try"), "GRANTED");
  const auto token = holder->token();
  ASSERT_NO_FATAL_FAILURE(fill(*crowd));
  EXPECT_EQ(waiter->ask("try"), "REFUSED");
  EXPECT_EQ(waiter->ask("acquire 500"), "REFUSED");
  EXPECT_EQ(queue(*waiter), std::vector{token}) << "entries of the other lock are shown";
  wait_behind(1, *waiter, *onlooker_);
  ASSERT_NO_FATAL_FAILURE(fill(*crowd));
  EXPECT_TRUE(waiter->silent()) << "granted beside the holder";
  EXPECT_EQ(holder->ask("release"), "RELEASED");
  expect_granted(*waiter);
  EXPECT_GT(waiter->token(), token);
  EXPECT_EQ(waiter->ask("release"), "RELEASED");
}

INSTANTIATE_TEST_SUITE_P(HeldBy, EtcdNestedBefore,
                         ::testing::Values(Library::baton, Library::go, Library::v3lock,
                                           Library::etcdctl),
                         [](const auto& held) { return std::string(name_of(held.param)); });

TEST_F(EtcdNested, EntriesBelowKeepNobodyWaitingAbove) {
  const auto crowd = start_at(inner_, Library::baton, "crowd");
  ASSERT_NO_FATAL_FAILURE(fill(*crowd));
  const auto one = start_at(outer_, Library::baton, "one");
  const auto other = start_at(outer_, Library::baton, "other");
  keeps_out(*one, *other);
  ASSERT_EQ(one->ask("try"), "GRANTED");
  EXPECT_EQ(queue(*one), std::vector{one->token()});
  wait_behind(1, *other, *onlooker_);
  EXPECT_EQ(one->ask("release"), "RELEASED");
  expect_granted(*other);
}

TEST_F(EtcdNested, AHolderAboveKeepsNobodyWaitingBelow) {
  const auto holder = start_at(outer_, Library::baton, "holder");
  const auto waiter = start_at(outer_, Library::baton, "waiter");
  ASSERT_EQ(holder->ask("try"), "GRANTED");
  const auto token = holder->token();
  wait_behind(1, *waiter, *onlooker_);
  const auto one = start_at(inner_, Library::baton, "one");
  const auto other = start_at(inner_, Library::baton, "other");
  for (int round = 0; round < 3; ++round) keeps_out(*one, *other);
  EXPECT_TRUE(waiter->silent()) << "granted by a release of the nested lock";
  EXPECT_EQ(queue(*holder).size(), 2u);
  EXPECT_EQ(queue(*onlooker_).front(), token);
  EXPECT_EQ(holder->ask("release"), "RELEASED");
  expect_granted(*waiter);
}

}  // namespace
}  // namespace baton::interop
