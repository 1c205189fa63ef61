// etcd: one real server, or the cluster that BATON_TEST_ETCD names. Clients come through a proxy
// for each server, so that they can be cut off; the observer does not.
#include "conformance/etcd_rig.h"

namespace baton::conformance {
namespace {

const RigKind kEtcd{"etcd", [] { return make_etcd_rig(1); }};

BATON_CONFORMANCE(kEtcd, kEtcd);

}  // namespace
}  // namespace baton::conformance
