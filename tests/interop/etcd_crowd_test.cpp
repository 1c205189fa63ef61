// Many contenders (baton with Go's concurrency.Mutex and `etcdctl lock`, or with the lock service)
// take turns on one lock of a real etcd server.
//
// BATON_TURNS=300 baton_etcd_crowd_test makes a long run of two minutes.
#include "interop/crowd.h"
#include "interop/etcd_fixture.h"

#include <gtest/gtest.h>

namespace baton::interop {
namespace {

class EtcdCrowd : public CrowdTest {
 protected:
  EtcdCrowd() : CrowdTest(kEtcd) {}
};

TEST_P(EtcdCrowd, TakesTurnsInTheOrderOfArrival) { takes_turns_in_the_order_of_arrival(); }
TEST_P(EtcdCrowd, WithoutTheLockTheChecksBite) { without_the_lock_the_checks_bite(); }

INSTANTIATE_TEST_SUITE_P(
    WithBaton, EtcdCrowd,
    ::testing::Values(Crowd{{{Library::baton, 4}, {Library::go, 2}, {Library::etcdctl, 2}}, 100},
                      Crowd{{{Library::baton, 2}, {Library::v3lock, 2}}, 40}),
    of_param);
INSTANTIATE_TEST_SUITE_P(PeersAlone, EtcdCrowd,
                         ::testing::Values(Crowd{
                             {{Library::go, 2}, {Library::v3lock, 2}, {Library::etcdctl, 2}}, 20}),
                         of_param);

}  // namespace
}  // namespace baton::interop
