// Computes the position of a ticket in its queue from a read of the lock's keys. Pure functions.
#pragma once

#include "etcd/namespace.h"

#include "common/seam/ticket.h"
#include "etcd/baton_etcd_wire.pb.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace baton::etcd {

// The number of keys that a short read requests: the ticket's own key and sixteen ahead of it.
inline constexpr std::int64_t kShortReading = 17;

// Requests the newest keys below the prefix that were created at revision `newest` or before (0: no
// limit). Keys only, without values.
etcdpb::RangeRequest short_range(const std::string& prefix, std::int64_t newest);
// Requests all keys below the prefix. Keys only, without values.
etcdpb::RangeRequest full_range(const std::string& prefix);

struct QueueReading {
  // The read was truncated and does not show the predecessor: the caller must read all keys.
  bool incomplete = false;
  Standing standing;  // if our ticket is not in it, the ticket is gone
};

// Computes where the ticket `key`, created at revision `token`, stands. Only direct entries of the
// lock count, and a truncated short read may be full of entries of locks below it. A truncated read
// that shows a predecessor proves that this is the nearest one, because it contains the newest
// keys. It never proves that there is no predecessor.
QueueReading read_queue(const std::string& prefix, const std::string& key, std::uint64_t token,
                        Nonce nonce, const etcdpb::RangeResponse& reading);

}  // namespace baton::etcd
