// What may be concluded from a reading of a lock's keys. Pure.
#pragma once

#include "etcd/namespace.h"

#include "common/seam/ticket.h"
#include "etcd/baton_etcd_wire.pb.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace baton::etcd {

// How many keys a short reading asks for: my own and sixteen ahead.
inline constexpr std::int64_t kShortReading = 17;

// The newest keys below the prefix, not created after `newest` (0: any). keys only.
etcdpb::RangeRequest short_range(const std::string& prefix, std::int64_t newest);
// All of them.
etcdpb::RangeRequest full_range(const std::string& prefix);

struct QueueReading {
  // The reading was cut off, and does not show who is ahead: read all.
  bool incomplete = false;
  Standing standing;  // without my ticket in it: the ticket is gone
};

// Where the ticket `key`, created at `token`, stands. Only direct entries of the lock count; a
// short reading that was cut off may have been filled by entries of locks below it. It proves a
// predecessor if it shows one, because it shows the newest; it never proves that there is none.
QueueReading read_queue(const std::string& prefix, const std::string& key, std::uint64_t token,
                        Nonce nonce, const etcdpb::RangeResponse& reading);

}  // namespace baton::etcd
