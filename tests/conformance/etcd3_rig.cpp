// etcd: a cluster of three real servers.
#include "conformance/etcd_rig.h"

namespace baton::conformance {
namespace {

const RigKind kEtcd3{"etcd3", [] { return make_etcd_rig(3); }};

BATON_CONFORMANCE(kEtcd3, kEtcd3);

}  // namespace
}  // namespace baton::conformance
