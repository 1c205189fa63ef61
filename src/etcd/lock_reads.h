// LockReads: reads the keys of locks. The looks of many waiters of one lock share one read.
#pragma once

#include "common/seam/read_coalescer.h"
#include "etcd/link.h"

#include <cstdint>

namespace baton::etcd {

// What a caller needs of a lock's keys.
using NewestNeeded = std::int64_t;
// All keys. Any other value is a revision: the caller needs no key that was created later, and the
// nearest keys before it are enough (short_range). It may receive more keys than it needs.
inline constexpr NewestNeeded kAllKeys = 0;

// By the lock's prefix. All callers of one step of the strand share a read.
using LockReads = ReadCoalescer<NewestNeeded, Reply<etcdpb::RangeResponse>>;
LockReads make_lock_reads(Loop& loop, Link& link);

}  // namespace baton::etcd
