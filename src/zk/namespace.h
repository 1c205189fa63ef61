// Opens namespace internal inside baton::zk, so that the files of the ZooKeeper store use the names
// of src/common/base and src/common/seam without a prefix. Where both have a class of the same
// name, internal::Session means the common one.
#pragma once

namespace baton::internal {}

namespace baton::zk {
using namespace internal;
}  // namespace baton::zk
