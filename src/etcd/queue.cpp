#include "etcd/queue.h"

#include "etcd/path.h"

#include <algorithm>

namespace baton::etcd {

etcdpb::RangeRequest full_range(const std::string& prefix) {
  etcdpb::RangeRequest request;
  request.set_key(prefix);
  request.set_range_end(range_end_of(prefix));
  request.set_keys_only(true);
  return request;
}

etcdpb::RangeRequest short_range(const std::string& prefix, std::int64_t newest) {
  auto request = full_range(prefix);
  request.set_sort_target(etcdpb::RangeRequest::CREATE);
  request.set_sort_order(etcdpb::RangeRequest::DESCEND);
  request.set_limit(kShortReading);
  request.set_max_create_revision(newest);
  return request;
}

QueueReading read_queue(const std::string& prefix, const std::string& key, std::uint64_t token,
                        Nonce nonce, const etcdpb::RangeResponse& reading) {
  QueueReading result;
  const auto mine = static_cast<std::int64_t>(token);
  bool there = false;
  bool older_than_mine = false;
  std::size_t ahead = 0;
  const etcdpb::KeyValue* predecessor = nullptr;
  for (const auto& kv : reading.kvs()) {
    older_than_mine |= kv.create_revision() < mine;
    if (kv.key() == key) {
      // The same key with another create revision is not this ticket.
      there |= kv.create_revision() == mine;
      continue;
    }
    if (kv.create_revision() >= mine || !is_direct_entry(prefix, kv.key())) continue;
    ++ahead;
    if (predecessor == nullptr || kv.create_revision() > predecessor->create_revision()) {
      predecessor = &kv;
    }
  }
  if (!there) {
    // A truncated read may not reach back to our key. If it contains an older key, it does reach
    // back, and our key is gone.
    result.incomplete = reading.more() && !older_than_mine;
    return result;
  }
  if (predecessor == nullptr && reading.more()) {
    result.incomplete = true;
    return result;
  }
  auto& standing = result.standing;
  standing.token = token;
  if (predecessor != nullptr) {
    standing.view.omitted_ahead = ahead - 1;
    if (reading.more()) {
      // Some keys were not read. Add at least 1 for them, even if they may be entries of other
      // locks: the caller must not conclude that only one ticket is ahead.
      const auto hidden =
          reading.count() > reading.kvs_size() ? reading.count() - reading.kvs_size() : 1;
      standing.view.omitted_ahead += static_cast<std::size_t>(hidden);
    }
    // A negative revision is invalid but still ahead of our ticket. Converted to an unsigned rank
    // it would be the highest rank of all, so it becomes 0.
    standing.view.tickets.push_back(
        {static_cast<std::uint64_t>(std::max<std::int64_t>(predecessor->create_revision(), 0)),
         format_entry_id(prefix, predecessor->key(), predecessor->create_revision()),
         std::nullopt});
  }
  standing.view.tickets.push_back({token, format_entry_id(prefix, key, mine), nonce});
  return result;
}

}  // namespace baton::etcd
