// The namespace of the memory store. Its files use the names of src/common/base and src/common/seam
// without a prefix. If the store has a class of the same name, the common one is written with its
// prefix, as in internal::Session.
#pragma once

namespace baton::internal {}

namespace baton::memory {
using namespace internal;
}  // namespace baton::memory
