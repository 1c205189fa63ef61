// Opens namespace internal inside baton::etcd, so that the files of the etcd store use the names of
// src/common/base and src/common/seam without a prefix. Where both have a class of the same name,
// internal::Session means the common one.
#pragma once

namespace baton::internal {}

namespace baton::etcd {
using namespace internal;
}  // namespace baton::etcd
