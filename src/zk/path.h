// Names and paths of the ZooKeeper store: locks ↔ directories, tickets ↔ child nodes. Pure.
#pragma once

#include "common/seam/ticket.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::internal {

// The last number a directory can give; after it the server gives the same one for ever.
inline constexpr std::int64_t kLastSequence = 2147483647;

// The directory of a lock. root: "" or "/app".
std::string zk_directory(std::string_view root, std::string_view lock);

// The directory's ancestors below "/" and itself, outermost first.
std::vector<std::string> zk_ancestors(std::string_view directory);

// What a client's entries begin with: eight characters, random.
std::string zk_client_id(std::uint64_t random);
// The unique part of an entry's name, and what we ask the server to number.
std::string zk_entry_id(std::string_view client, Nonce nonce);
std::string zk_entry_prefix(std::string_view entry_id);  // "<id>-lock-"

struct ZkEntry {
  std::int64_t sequence = 0;  // numbers after a wrap come last
  std::string name;
  bool operator==(const ZkEntry&) const = default;
};

// The number of an entry: "...-lock-N" (ours, Curator's) or "...__lock__N" (kazoo's). None: this
// child is not an entry.
std::optional<std::int64_t> zk_sequence(std::string_view child);
// The number can no longer order anybody.
inline bool zk_exhausted(std::int64_t sequence) noexcept { return sequence >= kLastSequence; }

struct ZkQueue {
  std::vector<ZkEntry> entries;  // in order
  std::size_t others = 0;        // children that are no entries
};
ZkQueue zk_queue(const std::vector<std::string>& children);

// Where `name` stands; nothing if it is not in the queue.
struct ZkPosition {
  std::size_t ahead = 0;                 // with ties: whoever has our number counts as ahead
  const ZkEntry* predecessor = nullptr;  // the nearest ahead
};
std::optional<ZkPosition> zk_position(const ZkQueue& queue, std::int64_t sequence,
                                      std::string_view name);

// Ranks for the recipe: the entry of mine comes after others with the same number, never zero.
std::uint64_t zk_rank(std::int64_t sequence, bool mine) noexcept;

// Node data: UTF-8 with a version. Foreign data gives no label.
std::string zk_encode_label(std::string_view label);
std::optional<std::string> zk_decode_label(std::string_view data);

}  // namespace baton::internal
