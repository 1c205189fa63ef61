#include "file/queue_file.h"

#include "file/error.h"
#include "file/token_counter.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

namespace baton::file {

namespace {

constexpr int kOpen = O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;

// The token counter skips ahead at each boot, but a queue file that a power cut left does not. So a
// header of another boot must not give tokens in this boot: its tokens would be too small. All
// clients of that file are dead.
std::uint64_t this_boot() {
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): it is 16 digits, and value() would throw
  static const std::uint64_t boot = parse_hex16(current_boot()).value();
  return boot;
}

QueueRecord make_record(RecordKind kind) noexcept {
  QueueRecord record{};
  record.magic = kRecordMagic;
  record.version = kRecordVersion;
  record.kind = kind;
  return record;
}

bool is(const QueueRecord& record, RecordKind kind) noexcept {
  return record.magic == kRecordMagic && record.version == kRecordVersion && record.kind == kind;
}

}  // namespace

QueueFile::QueueFile(GenerationId id, UniqueFd fd)
    : id_(id), name_(queue_file_name(id)), capacity_(capacity_of(id.number)), fd_(std::move(fd)) {
  const struct stat status = check_plain_file(fd_.get(), "queue file " + name_);
  inode_ = status.st_ino;
  device_ = status.st_dev;
  // Map the whole capacity, which is more than the file has, so that later records need no new
  // mapping. Memory behind the end of the file must never be touched (SIGBUS).
  void* mapped = ::mmap(nullptr, capacity_ * sizeof(QueueRecord), PROT_READ | PROT_WRITE,
                        MAP_SHARED, fd_.get(), 0);
  if (mapped == MAP_FAILED) throw io_error(errno, "cannot map queue file " + name_);
  records_ = static_cast<QueueRecord*>(mapped);
}

QueueFile::~QueueFile() {
  if (records_ != nullptr) ::munmap(records_, capacity_ * sizeof(QueueRecord));
}

std::shared_ptr<QueueFile> QueueFile::open(int directory, GenerationId id) {
  const std::string name = queue_file_name(id);
  UniqueFd fd(::openat(directory, name.c_str(), kOpen));
  if (!fd) {
    if (errno == ENOENT) return nullptr;
    if (errno == ELOOP) throw damaged("queue file " + name + " is a symbolic link; refused");
    throw io_error(errno, "cannot open queue file " + name);
  }
  std::shared_ptr<QueueFile> file(new QueueFile(id, std::move(fd)));
  file->refresh();
  return file;
}

std::shared_ptr<QueueFile> QueueFile::create(const StoreDir& store, int directory,
                                             GenerationId id) {
  UniqueFd fd = store.create_file(directory, queue_file_name(id), O_APPEND);
  if (!fd) return nullptr;
  return std::shared_ptr<QueueFile>(new QueueFile(id, std::move(fd)));
}

bool QueueFile::reopen(int directory) {
  if (fd_) return true;
  UniqueFd fd(::openat(directory, name_.c_str(), kOpen));
  if (!fd) {
    if (errno == ENOENT || errno == ELOOP) return removed();
    throw io_error(errno, "cannot open queue file " + name_);
  }
  const struct stat status = check_plain_file(fd.get(), "queue file " + name_);
  if (status.st_ino != inode_ || status.st_dev != device_) return removed();
  fd_ = std::move(fd);
  return true;
}

bool QueueFile::removed() noexcept {
  // Counts as sealed in both cases: a client freezes the file before it unlinks it (rule 5), and
  // after a removal by hand no client can find its records any more.
  sealed_ = true;
  return false;
}

void QueueFile::refresh() {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) throw io_error(errno, "cannot examine " + name_);
  if (status.st_nlink == 0) {
    removed();  // reads no more records: those appended after the removal do not count
  } else {
    take_size(status.st_size);
  }
  if (frozen()) close_descriptor();
}

bool QueueFile::refresh(const struct stat& status) {
  if (status.st_ino != inode_ || status.st_dev != device_) return removed();
  take_size(status.st_size);
  return true;
}

void QueueFile::take_size(std::int64_t size) {
  constexpr std::int64_t kSize = sizeof(QueueRecord);
  scan(static_cast<std::uint32_t>(std::min<std::int64_t>(size / kSize, capacity_)));
  // Only a power cut can leave a length that is not a whole number of records, and it ended all
  // clients of the file. All clients see the same broken record and ignore what follows it.
  if (size % kSize != 0) sealed_ = true;
}

void QueueFile::scan(std::uint32_t count) {
  for (; scanned_ < count && !sealed_; ++scanned_) {
    const QueueRecord& record = records_[scanned_];
    if (is(record, RecordKind::seal)) {
      sealed_ = true;
      break;
    }
    if (scanned_ == 0) {
      if (!is(record, RecordKind::header) || record.capacity != capacity_ ||
          record.boot != this_boot() || record.token == 0 || record.token >= kTokenEnd) {
        sealed_ = true;  // left by a power cut: no client can use this generation
        break;
      }
      first_token_ = record.token;
    }
    end_ = scanned_ + 1;
  }
}

std::int64_t QueueFile::append(const QueueRecord* records, int count) {
  const std::size_t size = static_cast<std::size_t>(count) * sizeof(QueueRecord);
  ssize_t written;
  do {
    written = ::write(fd_.get(), records, size);
  } while (written < 0 && errno == EINTR);
  if (written < 0) throw io_error(errno, "cannot append to queue file " + name_);
  // The position of our own descriptor is the end of our record, even if other clients have
  // appended more since.
  const off_t position = ::lseek(fd_.get(), 0, SEEK_CUR);
  if (position < 0) throw io_error(errno, "cannot read the position in queue file " + name_);
  if (position % static_cast<off_t>(sizeof(QueueRecord)) != 0) {
    throw damaged("queue file " + name_ +
                  " is damaged: its length is not a whole number of records");
  }
  const std::int64_t index = position / static_cast<off_t>(sizeof(QueueRecord)) - 1;
  // The file may have the two records on two pages, and the disk may be full after the first. The
  // header alone is valid, so append the join again.
  if (static_cast<std::size_t>(written) < size) return append(records + 1, count - 1);
  return index;
}

std::optional<std::uint32_t> QueueFile::join(ClientId client, std::uint64_t nonce,
                                             std::uint64_t first_token) {
  // Aligned, so that no record crosses a page of our memory. The kernel then copies each record in
  // one piece, and other clients never see a length between two records.
  alignas(128)
      QueueRecord records[2] = {make_record(RecordKind::header), make_record(RecordKind::join)};
  records[0].token = first_token;
  records[0].capacity = capacity_;
  records[0].boot = this_boot();
  records[1].client = static_cast<std::uint64_t>(client);
  records[1].nonce = nonce;
  records[1].since = std::chrono::duration_cast<std::chrono::microseconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
  const bool header = empty() && first_token != 0;
  const std::int64_t index = header ? append(records, 2) : append(records + 1, 1);
  full_fence();
  refresh();
  if (index < static_cast<std::int64_t>(end_) && index > 0 && first_token_ != 0) {
    return static_cast<std::uint32_t>(index);
  }
  return std::nullopt;
}

void QueueFile::seal() {
  refresh();
  if (frozen()) return;
  alignas(64) const QueueRecord record = make_record(RecordKind::seal);
  append(&record, 1);
  full_fence();
  refresh();
}

bool QueueFile::in_line(std::uint32_t index) noexcept {
  QueueRecord& record = records_[index];
  return is(record, RecordKind::join) && !has_flag(record, RecordFlag::withdrawn) &&
         !has_flag(record, RecordFlag::dead) && !has_flag(record, RecordFlag::evicted);
}

std::uint32_t QueueFile::floor() noexcept {
  while (floor_ < end_ && !in_line(floor_)) ++floor_;
  return floor_;
}

}  // namespace baton::file
