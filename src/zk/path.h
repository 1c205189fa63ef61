// Builds and parses the names of the ZooKeeper store: a lock is a directory, a ticket is a child
// node. Pure functions.
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

// The last sequence number of a directory. After it the server assigns the same number permanently.
inline constexpr std::int64_t kLastSequence = 2147483647;

// The directory of a lock. root: "" or "/app".
std::string lock_directory(std::string_view root, std::string_view lock);

// The ancestors of the directory below "/", and the directory itself, outermost first.
std::vector<std::string> ancestors_of(std::string_view directory);

// The prefix of the names of a client's entries: eight random characters.
std::string format_client_id(std::uint64_t random);
// The unique part of an entry's name; entry_prefix() is the name to which the server appends the
// sequence number.
std::string format_entry_id(std::string_view client, Nonce nonce);
std::string entry_prefix(std::string_view entry_id);  // "<id>-lock-"

struct QueueEntry {
  std::int64_t sequence = 0;  // numbers after a counter overflow come last
  std::string name;
  bool operator==(const QueueEntry&) const = default;
};

// The sequence number of an entry: N of "...-lock-N" (ours, Curator's) or "...__lock__N" (kazoo's).
// nullopt: this child is not an entry.
std::optional<std::int64_t> sequence_of(std::string_view child);
// The number can no longer order entries, because further entries get the same number.
inline bool is_exhausted(std::int64_t sequence) noexcept { return sequence >= kLastSequence; }

struct Queue {
  std::vector<QueueEntry> entries;  // in order
  std::size_t others = 0;           // children that are not entries
};
Queue make_queue(const std::vector<std::string>& children);

// Where `name` stands; nullopt if it is not in the queue.
struct Position {
  std::size_t ahead = 0;                    // other entries with the same number count as ahead
  const QueueEntry* predecessor = nullptr;  // the nearest ahead
};
std::optional<Position> position_of(const Queue& queue, std::int64_t sequence,
                                    std::string_view name);

// The rank of an entry for the lock algorithm. Our own entry comes after other entries with the
// same number. Never zero.
std::uint64_t rank_of(std::int64_t sequence, bool mine) noexcept;

// The data of a node: UTF-8 text with a version. decode_label() returns nullopt for data that other
// programs wrote.
std::string encode_label(std::string_view label);
std::optional<std::string> decode_label(std::string_view data);

}  // namespace baton::zk
