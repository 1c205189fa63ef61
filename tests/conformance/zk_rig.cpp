// ZooKeeper: one real server, or the ensemble that BATON_TEST_ZK names. Clients come through a
// proxy for each server, so that they can be cut off; the observer does not.
#include "conformance/zk_rig.h"

namespace baton::conformance {
namespace {

const RigKind kZk{"zk", [] { return make_zk_rig(1); }};

BATON_CONFORMANCE(kZk, kZk);

}  // namespace
}  // namespace baton::conformance
