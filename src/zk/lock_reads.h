// LockReads: reads lock directories. Reads that are requested while one is under way share the next
// one.
#pragma once

#include "common/seam/read_coalescer.h"
#include "zk/outbox.h"
#include "zk/path.h"

namespace baton::zk {

struct Listing {
  Status status = Status::lost;
  int code = 0;
  Queue queue;  // empty unless status is ok
};

// Which changes of other sessions the read must show.
enum class Freshness {
  session,  // at least those that this session has seen
  synced,   // all that were committed before the call
};

// By the lock's directory. The read is sent at once, so it shows everything that this session did
// before, and nothing that it does afterwards.
using LockReads = ReadCoalescer<Freshness, const Listing>;
LockReads make_lock_reads(Loop& loop, Outbox& outbox);

}  // namespace baton::zk
