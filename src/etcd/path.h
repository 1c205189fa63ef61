// Keys of the etcd store: locks and tickets as keys and values. Pure.
#pragma once

#include "etcd/namespace.h"

#include "common/seam/ticket.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace baton::etcd {

// What all keys of a lock begin with: "/app/a/b/"; "a/b/" without a root.
std::string lock_prefix(std::string_view root, std::string_view lock);
// The first key after all that begin with this prefix.
std::string range_end_of(std::string_view prefix);
// prefix + lease in hex + "-" + counter.
std::string entry_key(std::string_view prefix, std::int64_t lease, Nonce nonce);

// The record of the token base: "/app/~token_base"; "~token_base" without a root.
std::string token_base_key(std::string_view root);

// Whether the key is an entry of this very lock, not of one below it. Every program's keys count:
// so do its peers see it. The one exception is the record of the token base of a root that lies
// below ours: it has no lease and would hold the lock of that name without end.
bool is_direct_entry(std::string_view prefix, std::string_view key) noexcept;

// An entry as operators see it: the key without the prefix, and the create revision, because Go's
// clients use their keys again: "694d8f7f3-12@4711".
struct EntryId {
  std::string suffix;
  std::int64_t revision = 0;  // 0: not said
};
std::string format_entry_id(std::string_view prefix, std::string_view key, std::int64_t revision);
std::optional<EntryId> parse_entry_id(std::string_view id);

// The lock that a key is an entry of; nothing: of none.
std::optional<std::string> lock_of_key(std::string_view root, std::string_view key);

// Values: UTF-8 with a version. Foreign values give nothing.
struct EntryValue {
  std::string label;
  std::chrono::system_clock::time_point since;
};
std::string encode_value(std::string_view label, std::chrono::system_clock::time_point since);
std::optional<EntryValue> decode_value(std::string_view value);

}  // namespace baton::etcd
