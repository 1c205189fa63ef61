// ZooKeeper: an ensemble of three real servers.
#include "conformance/zk_rig.h"

namespace baton::conformance {
namespace {

const RigKind kZk3{"zk3", [] { return make_zk_rig(3); }};

BATON_CONFORMANCE(kZk3, kZk3);

}  // namespace
}  // namespace baton::conformance
