// Go's concurrency.Mutex, `etcdctl lock` and the server's lock service, in pairs on one lock of a
// real etcd server, step by step: what the peers do among themselves.
#include "interop/contender.h"
#include "interop/etcd_fixture.h"
#include "interop/pair.h"

#include <gtest/gtest.h>

namespace baton::interop {
namespace {

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

INSTANTIATE_TEST_SUITE_P(PeersAlone, EtcdPair,
                         ::testing::Values(Pair{Library::go, Library::v3lock},
                                           Pair{Library::go, Library::etcdctl},
                                           Pair{Library::etcdctl, Library::v3lock}),
                         of_param);

}  // namespace
}  // namespace baton::interop
