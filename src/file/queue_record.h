// The records of a queue file, 64 bytes each, as they lie in the mapped file.
#pragma once

#include "file/namespace.h"

#include <atomic>
#include <cstdint>

namespace baton::file {

enum class RecordKind : std::uint8_t { header = 1, join = 2, seal = 3 };

// A record is written once, whole, by one write(). After that only the flags change, each its own
// byte and only from 0 to 1: whoever sets one needs no lock, and a process that is stopped or
// killed anywhere leaves nothing half done.
struct QueueRecord {
  std::uint32_t magic;
  std::uint8_t version;
  RecordKind kind;
  std::uint8_t reserved1[2];
  std::uint8_t withdrawn;  // by its owner
  std::uint8_t evicted;    // by force
  std::uint8_t dead;       // by somebody who found its owner dead
  std::uint8_t reserved2[5];
  std::uint64_t client;    // join: whose
  std::uint64_t nonce;     // join: which
  std::int64_t since;      // join: wall clock, microseconds
  std::uint64_t token;     // header: the token of record 0
  std::uint64_t capacity;  // header: records from here on are void
  std::uint64_t boot;      // header: the boot it was written in; in any other it is void
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
  // ThreadSanitizer knows no fences; a read-modify-write does the same on the machines it runs on.
  static std::atomic<int> fence{0};
  fence.fetch_add(0, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

// Returns whether it was set before. Followed by a full fence: the other side appends, then reads
// the flags; we set a flag, then read the length. One of the two sees the other.
inline bool set_flag(QueueRecord& record, RecordFlag flag) noexcept {
  const bool before =
      std::atomic_ref<std::uint8_t>(flag_byte(record, flag)).exchange(1, std::memory_order_seq_cst);
  full_fence();
  return before;
}

}  // namespace baton::file
