// Many contenders (baton with Apache Curator, or baton with kazoo) take turns on one lock of a real
// ZooKeeper server.
#include "interop/crowd.h"
#include "interop/zk_fixture.h"

#include <gtest/gtest.h>

namespace baton::interop {
namespace {

class ZkCrowd : public CrowdTest {
 protected:
  ZkCrowd() : CrowdTest(kZk) {}
};

TEST_P(ZkCrowd, TakesTurnsInTheOrderOfArrival) { takes_turns_in_the_order_of_arrival(); }
TEST_P(ZkCrowd, WithoutTheLockTheChecksBite) { without_the_lock_the_checks_bite(); }

INSTANTIATE_TEST_SUITE_P(WithBaton, ZkCrowd,
                         ::testing::Values(Crowd{{{Library::baton, 4}, {Library::curator, 2}}, 500},
                                           Crowd{{{Library::baton, 4}, {Library::kazoo, 2}}, 500}),
                         of_param);
INSTANTIATE_TEST_SUITE_P(PeersAlone, ZkCrowd,
                         ::testing::Values(Crowd{{{Library::curator, 2}}, 200},
                                           Crowd{{{Library::kazoo, 2}}, 200}),
                         of_param);

}  // namespace
}  // namespace baton::interop
