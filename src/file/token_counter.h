// TokenCounter: allocates all fencing tokens of a store. It survives a power cut, and it has no
// lock that a stopped process could keep.
#pragma once

#include "common/base/unique_fd.h"
#include "file/store_dir.h"

#include <atomic>
#include <cstdint>
#include <string>

namespace baton::file {

// The contents of tokens.<boot>, mapped by every client. Within a boot, `next` in the page cache is
// always right. A power cut may leave an older page on the disk. So tokens are given out only below
// a limit that was written to the disk first, and the next boot starts at that limit.
struct TokenPage {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t size;
  std::uint64_t next;       // the smallest token that was not given out
  std::uint64_t pending;    // the limit that a client is writing to the disk
  std::uint64_t confirmed;  // the limit that is known to be on the disk; tokens stay below
  std::uint64_t named;      // 1: the name of this file is known to be on the disk
  std::uint64_t reserved[2];
};
static_assert(sizeof(TokenPage) == 64);

inline constexpr std::uint64_t kTokenMagic = 0x314e4b544e544142;  // "BATNTKN1"
inline constexpr std::uint32_t kTokenVersion = 1;
inline constexpr std::uint64_t kTokenBlock = std::uint64_t{1} << 20;
inline constexpr std::uint64_t kTokenEnd = std::uint64_t{1} << 63;

// Why a page cannot be trusted, or null. Pure.
const char* token_page_damage(const TokenPage& page) noexcept;

class TokenCounter {
 public:
  // Opens the counter of this boot and makes it if it is missing. A new counter starts at the limit
  // of the counters of earlier boots or, in a new store, at the wall clock in microseconds. boot:
  // 16 hex digits. Throws Error; a damaged counter of any boot is refused, because tokens must
  // never go back.
  TokenCounter(const StoreDir& store, const std::string& boot);
  ~TokenCounter();
  TokenCounter(const TokenCounter&) = delete;
  TokenCounter& operator=(const TokenCounter&) = delete;

  // Returns the first of `count` tokens that no other call gets, in any process. They are greater
  // than all tokens given out before. Throws Error.
  std::uint64_t allocate(std::uint32_t count);

  // Whether all tokens below this one have been given out, to any client. Throws Error.
  bool handed_out(std::uint64_t end);

 private:
  void open_or_make();
  bool open_existing();
  void make();
  void confirm(std::uint64_t limit);
  void check_still_there();
  void unmap() noexcept;

  const StoreDir& store_;
  const std::string boot_;
  const std::string file_;
  TokenPage* page_ = nullptr;
  std::uint64_t inode_ = 0;
  std::uint64_t seen_ = 0;  // the highest `next` that this object has seen
};

// The id of the current boot, as 16 hex digits. Throws Error without /proc.
std::string current_boot();

}  // namespace baton::file
