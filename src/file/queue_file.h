// QueueFile: reads and appends the records of one generation of a queue. The file only grows.
//
// A join is one write() of one record on an O_APPEND descriptor. The kernel gives the record its
// index and makes it visible in one step, under the lock of the inode; a process cannot be stopped
// while it has this lock. Record 0 is the header. Records behind a seal, or at an index of capacity
// or more, are void.
#pragma once

#include "common/base/unique_fd.h"
#include "file/names.h"
#include "file/queue_record.h"
#include "file/store_dir.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace baton::file {

class QueueFile {
 public:
  // Opens an existing file of this name; null if there is none. Throws Error.
  static std::shared_ptr<QueueFile> open(int directory, GenerationId id);
  // Makes a new, empty file; null if the directory was removed. Throws Error.
  static std::shared_ptr<QueueFile> create(const StoreDir& store, int directory, GenerationId id);
  ~QueueFile();
  QueueFile(const QueueFile&) = delete;
  QueueFile& operator=(const QueueFile&) = delete;

  GenerationId id() const noexcept { return id_; }
  const std::string& name() const noexcept { return name_; }
  std::uint32_t capacity() const noexcept { return capacity_; }

  // Reads the records that were appended since the last refresh. Needs the descriptor. Throws
  // Error.
  void refresh();
  // The same with the result of a stat of its name. False: the name has no file or another file, so
  // this file was removed.
  bool refresh(const struct stat& status);

  // As of the last refresh. Frozen: no client can join any more, all joins of this file are known.
  bool frozen() const noexcept { return sealed_ || scanned_ >= capacity_; }
  bool has_header() const noexcept { return first_token_ != 0; }
  bool empty() const noexcept { return scanned_ == 0 && !sealed_; }
  std::uint64_t first_token() const noexcept { return first_token_; }
  std::uint64_t token(std::uint32_t index) const noexcept { return first_token_ + index; }
  std::uint32_t end() const noexcept { return end_; }  // one after the last record that may count

  // Appends a join of this client. If the file is empty, appends a header with this first token
  // before it (first_token 0: no header). Returns the index; nothing: the record is void, continue
  // with another generation. Throws Error; then no appended record counts.
  std::optional<std::uint32_t> join(ClientId client, std::uint64_t nonce,
                                    std::uint64_t first_token);
  void seal();  // refreshes; appends nothing if frozen. Throws Error.

  QueueRecord& record(std::uint32_t index) noexcept { return records_[index]; }
  ClientId client(std::uint32_t index) noexcept { return ClientId{records_[index].client}; }
  // Whether the record is a join without a flag (withdrawn, evicted, dead). Its client may be dead
  // before the flag says so.
  bool in_line(std::uint32_t index) noexcept;
  // No record below this index is in line, now or ever.
  std::uint32_t floor() noexcept;
  bool drained() noexcept { return floor() >= end_; }

  // A process has few descriptors but many mappings: the mapping stays when the descriptor is
  // closed.
  bool has_descriptor() const noexcept { return static_cast<bool>(fd_); }
  void close_descriptor() noexcept { fd_.reset(); }
  bool reopen(int directory);  // false: the name has no file or another file. Throws Error.

 private:
  QueueFile(GenerationId id, UniqueFd fd);
  void take_size(std::int64_t size);
  void scan(std::uint32_t count);
  std::int64_t append(const QueueRecord* records, int count);
  bool removed() noexcept;

  const GenerationId id_;
  const std::string name_;
  const std::uint32_t capacity_;
  UniqueFd fd_;
  std::uint64_t inode_ = 0;
  std::uint64_t device_ = 0;
  QueueRecord* records_ = nullptr;
  std::uint32_t scanned_ = 0;
  std::uint32_t end_ = 0;
  std::uint32_t floor_ = 0;
  std::uint64_t first_token_ = 0;
  bool sealed_ = false;
};

}  // namespace baton::file
