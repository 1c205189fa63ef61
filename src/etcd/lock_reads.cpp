#include "etcd/lock_reads.h"

#include "etcd/queue.h"

#include <utility>

namespace baton::etcd {

LockReads make_lock_reads(Loop& loop, Link& link) {
  const auto merge = [](NewestNeeded, NewestNeeded) { return kAllKeys; };
  return {loop, LockReads::Start::end_of_step, merge,
          [&link](const std::string& prefix, NewestNeeded newest, LockReads::Handler answered) {
            const auto request =
                newest == kAllKeys ? full_range(prefix) : short_range(prefix, newest);
            link.ask<etcdpb::RangeResponse>(Call::range, request, {}, std::move(answered));
          }};
}

}  // namespace baton::etcd
