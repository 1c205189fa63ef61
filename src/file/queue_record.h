// QueueRecord: one record of a queue file, 64 bytes, in the layout of the mapped file.
#pragma once

#include "file/namespace.h"

#include <atomic>
#include <cstdint>

namespace baton::file {

enum class RecordKind : std::uint8_t { header = 1, join = 2, seal = 3 };

// One write() writes the whole record. After that only the flags change: each is one byte and
// changes only from 0 to 1. So a client needs no lock to set a flag, and a process that is stopped
// or killed at any point leaves nothing half done.
struct QueueRecord {
  std::uint32_t magic;
  std::uint8_t version;
  RecordKind kind;
  std::uint8_t reserved1[2];
  std::uint8_t withdrawn;  // by its owner
  std::uint8_t evicted;    // by force
  std::uint8_t dead;       // by a client that found the owner dead
  std::uint8_t reserved2[5];
  std::uint64_t client;    // join: id of its owner
  std::uint64_t nonce;     // join: the owner's nonce for this ticket
  std::int64_t since;      // join: wall clock, microseconds
  std::uint64_t token;     // header: the token of record 0
  std::uint64_t capacity;  // header: records at this index and above are void
  std::uint64_t boot;      // header: the boot that wrote it; in any other boot the file is void
};
static_assert(sizeof(QueueRecord) == 64);

inline constexpr std::uint32_t kRecordMagic = 0x514e5442;  // "BTNQ"
inline constexpr std::uint8_t kRecordVersion = 1;

enum class RecordFlag { withdrawn, evicted, dead };

inline std::uint8_t& flag_byte(QueueRecord& record, RecordFlag flag) noexcept {
  switch (flag) {
    case RecordFlag::withdrawn:
      return record.withdrawn;
    case RecordFlag::evicted:
      return record.evicted;
    case RecordFlag::dead:
      break;
  }
  return record.dead;
}

inline bool has_flag(QueueRecord& record, RecordFlag flag) noexcept {
  return std::atomic_ref<std::uint8_t>(flag_byte(record, flag)).load(std::memory_order_acquire) !=
         0;
}

// Orders everything before it against everything after it, between processes too.
inline void full_fence() noexcept {
#if defined(__SANITIZE_THREAD__)
  // ThreadSanitizer does not support fences; on its machines a read-modify-write has the same
  // effect.
  static std::atomic<int> fence{0};
  fence.fetch_add(0, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

// Sets the flag and returns whether it was set before. Ends with a full fence: this client sets a
// flag, then reads the length of the file; a joining client appends, then reads the flags. With the
// fence at least one of the two sees the change of the other.
inline bool set_flag(QueueRecord& record, RecordFlag flag) noexcept {
  const bool before =
      std::atomic_ref<std::uint8_t>(flag_byte(record, flag)).exchange(1, std::memory_order_seq_cst);
  full_fence();
  return before;
}

}  // namespace baton::file
