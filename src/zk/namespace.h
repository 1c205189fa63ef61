// The namespace of the ZooKeeper store. Its files use the names of src/common/base and
// src/common/seam without a prefix; where a class of the store has the name of one there, the
// latter is written internal::Session.
#pragma once

namespace baton::internal {}

namespace baton::zk {
using namespace internal;
}  // namespace baton::zk
