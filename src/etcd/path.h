// Builds and parses the keys and values of the etcd store. Pure functions.
#pragma once

#include "etcd/namespace.h"

#include "etcd/key_slots.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace baton::etcd {

// The prefix of all keys of a lock: "/app/a/b/", or "a/b/" without a root.
std::string lock_prefix(std::string_view root, std::string_view lock);
// The end of the range of all keys with this prefix: the first key after them.
std::string range_end_of(std::string_view prefix);
// The key of a ticket: prefix, lease id in hex, "-", and the slot.
std::string entry_key(std::string_view prefix, std::int64_t lease, KeySlot slot);

// The key of the token base record: "/app/~token_base", or "~token_base" without a root.
std::string token_base_key(std::string_view root);

// Whether the key is an entry of this lock, and not of a lock below it. Keys of every program count
// as entries, because those programs count our keys as well. The only exception is the token base
// record of a root below ours: it has no lease, and would hold the lock of that name permanently.
bool is_direct_entry(std::string_view prefix, std::string_view key) noexcept;

// The id of an entry that operators see: the key without the prefix, and the create revision, as in
// "694d8f7f3-12@4711". The revision is needed because the names of keys are used again.
struct EntryId {
  std::string suffix;
  std::int64_t revision = 0;  // 0: not given
};
std::string format_entry_id(std::string_view prefix, std::string_view key, std::int64_t revision);
std::optional<EntryId> parse_entry_id(std::string_view id);

// The name of the lock that has this key as an entry; nullopt if the key is not an entry.
std::optional<std::string> lock_of_key(std::string_view root, std::string_view key);

// The value of an entry: UTF-8 text with a version. decode_value() returns nullopt for values that
// other programs wrote.
struct EntryValue {
  std::string label;
  std::chrono::system_clock::time_point since;
};
std::string encode_value(std::string_view label, std::chrono::system_clock::time_point since);
std::optional<EntryValue> decode_value(std::string_view value);

}  // namespace baton::etcd
