// Names and paths of the ZooKeeper store: locks ↔ directories, tickets ↔ child nodes. Pure.
#pragma once

#include "zk/namespace.h"

#include "common/seam/ticket.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::zk {

// The last number a directory can give; after it the server gives the same one for ever.
inline constexpr std::int64_t kLastSequence = 2147483647;

// The directory of a lock. root: "" or "/app".
std::string lock_directory(std::string_view root, std::string_view lock);

// The directory's ancestors below "/" and itself, outermost first.
std::vector<std::string> ancestors_of(std::string_view directory);

// What a client's entries begin with: eight characters, random.
std::string format_client_id(std::uint64_t random);
// The unique part of an entry's name, and what we ask the server to number.
std::string format_entry_id(std::string_view client, Nonce nonce);
std::string entry_prefix(std::string_view entry_id);  // "<id>-lock-"

struct QueueEntry {
  std::int64_t sequence = 0;  // numbers after a wrap come last
  std::string name;
  bool operator==(const QueueEntry&) const = default;
};

// The number of an entry: "...-lock-N" (ours, Curator's) or "...__lock__N" (kazoo's). None: this
// child is not an entry.
std::optional<std::int64_t> sequence_of(std::string_view child);
// The number can no longer order anybody.
inline bool is_exhausted(std::int64_t sequence) noexcept { return sequence >= kLastSequence; }

struct Queue {
  std::vector<QueueEntry> entries;  // in order
  std::size_t others = 0;           // children that are no entries
};
Queue make_queue(const std::vector<std::string>& children);

// Where `name` stands; nothing if it is not in the queue.
struct Position {
  std::size_t ahead = 0;                    // with ties: whoever has our number counts as ahead
  const QueueEntry* predecessor = nullptr;  // the nearest ahead
};
std::optional<Position> position_of(const Queue& queue, std::int64_t sequence,
                                    std::string_view name);

// Ranks for the recipe: the entry of mine comes after others with the same number, never zero.
std::uint64_t rank_of(std::int64_t sequence, bool mine) noexcept;

// Node data: UTF-8 with a version. Foreign data gives no label.
std::string encode_label(std::string_view label);
std::optional<std::string> decode_label(std::string_view data);

}  // namespace baton::zk
