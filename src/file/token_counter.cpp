#include "file/token_counter.h"

#include "file/error.h"
#include "file/names.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <vector>

namespace baton::file {

namespace {

constexpr std::string_view kPrefix = "tokens.";
constexpr std::size_t kMapped = 4096;  // only the first 64 bytes exist in the file

std::atomic_ref<std::uint64_t> word(std::uint64_t& value) noexcept {
  return std::atomic_ref<std::uint64_t>(value);
}

void raise_to(std::uint64_t& value, std::uint64_t target) noexcept {
  auto ref = word(value);
  std::uint64_t now = ref.load();
  while (now < target && !ref.compare_exchange_weak(now, target)) {
  }
}

TokenPage snapshot(TokenPage& page) noexcept {
  TokenPage copy{};
  copy.magic = page.magic;
  copy.version = page.version;
  copy.size = page.size;
  // The values only grow, so they must be read in this order. In any other order, changes between
  // the reads could put next above confirmed, or confirmed above pending, in the copy of an
  // undamaged page.
  copy.next = word(page.next).load();
  copy.confirmed = word(page.confirmed).load();
  copy.pending = word(page.pending).load();
  return copy;
}

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw damaged(
      "token counter " + file + " is damaged (" + why +
      "); nothing can be locked until it is restored or, with no client running, removed");
}

// Nothing: the file is gone, because another client has made the new counter.
std::optional<TokenPage> read_page(int directory, const std::string& name) {
  UniqueFd fd(::openat(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    if (errno == ENOENT) return std::nullopt;
    if (errno == ELOOP) refuse(name, "it is a symbolic link");
    throw io_error(errno, "cannot open token counter " + name);
  }
  check_plain_file(fd.get(), "token counter " + name);
  TokenPage page{};
  const ssize_t size = ::pread(fd.get(), &page, sizeof page, 0);
  if (size < 0) throw io_error(errno, "cannot read token counter " + name);
  if (static_cast<std::size_t>(size) < sizeof page) refuse(name, "it is too short");
  if (const char* why = token_page_damage(page)) refuse(name, why);
  return page;
}

}  // namespace

const char* token_page_damage(const TokenPage& page) noexcept {
  if (page.magic != kTokenMagic) return "it is not a token counter";
  if (page.version != kTokenVersion || page.size != sizeof(TokenPage)) return "unknown version";
  if (page.next == 0) return "next token is 0";
  if (page.next >= kTokenEnd || page.pending >= kTokenEnd || page.confirmed >= kTokenEnd) {
    return "a value is 2^63 or more";
  }
  if (page.confirmed > page.pending) return "its confirmed limit is above its pending limit";
  if (page.next > page.confirmed && page.next - page.confirmed > kTokenBlock) {
    return "its next token is far above its limit";
  }
  return nullptr;
}

std::string current_boot() {
  UniqueFd fd(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  char text[64];
  const ssize_t size = fd ? ::read(fd.get(), text, sizeof text) : -1;
  if (size < 36) {
    throw Error(Errc::unsupported,
                "cannot read /proc/sys/kernel/random/boot_id, which safe tokens need; mount /proc");
  }
  return hex16(hash_text(std::string_view(text, 36)));
}

TokenCounter::TokenCounter(const StoreDir& store, const std::string& boot)
    : store_(store), boot_(boot), file_(std::string(kPrefix) + boot) {
  open_or_make();
}

TokenCounter::~TokenCounter() { unmap(); }

void TokenCounter::unmap() noexcept {
  if (page_ != nullptr) ::munmap(page_, kMapped);
  page_ = nullptr;
}

void TokenCounter::open_or_make() {
  // A sweep of another client may remove our unfinished file. Then retry.
  for (int attempt = 0; attempt < 10; ++attempt) {
    if (open_existing()) return;
    make();
  }
  throw damaged("token counter " + file_ + " cannot be made: another process keeps removing it");
}

bool TokenCounter::open_existing() {
  UniqueFd fd(::openat(store_.root(), file_.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    if (errno == ENOENT) return false;
    if (errno == ELOOP) refuse(file_, "it is a symbolic link");
    throw io_error(errno, "cannot open token counter " + file_);
  }
  const struct stat status = check_plain_file(fd.get(), "token counter " + file_);
  // Refuse a short file before mapping it: touching memory behind the end of the file is SIGBUS.
  if (status.st_size < static_cast<off_t>(sizeof(TokenPage))) refuse(file_, "it is too short");
  void* mapped = ::mmap(nullptr, kMapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED) throw io_error(errno, "cannot map token counter " + file_);
  unmap();
  page_ = static_cast<TokenPage*>(mapped);
  inode_ = status.st_ino;
  const TokenPage copy = snapshot(*page_);
  if (const char* why = token_page_damage(copy)) refuse(file_, why);
  if (copy.next < seen_) refuse(file_, "the token counter went back");
  seen_ = copy.next;
  // The client that made the counter may have been stopped before its name was on the disk. After a
  // power cut the counter would be gone, and its tokens would be given out again.
  if (word(page_->named).load() == 0) {
    if (::fsync(store_.root()) != 0) throw io_error(errno, "cannot sync " + store_.path());
    word(page_->named).store(1);
  }
  return true;
}

void TokenCounter::make() {
  std::uint64_t start = 0;
  std::vector<std::string> old;
  for_each_entry(store_.root(), [&](std::string_view name) {
    if (name.starts_with(kPrefix) && name != file_) old.emplace_back(name);
  });
  for (const std::string& name : old) {
    const auto page = read_page(store_.root(), name);
    if (!page) return;  // open_or_make() looks again
    start = std::max({start, page->pending, page->next});
  }
  if (old.empty()) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    start = static_cast<std::uint64_t>(std::max<std::int64_t>(now.tv_sec, 0)) * 1'000'000 +
            static_cast<std::uint64_t>(now.tv_nsec) / 1000 + 1;
  }
  TokenPage page{};
  page.magic = kTokenMagic;
  page.version = kTokenVersion;
  page.size = sizeof page;
  page.next = start;
  page.pending = page.confirmed = start + kTokenBlock;
  if (const char* why = token_page_damage(page)) refuse(file_, why);

  const std::string unfinished = std::string(kUnfinished) + hex16(random_u64());
  UniqueFd fd = store_.create_file(store_.root(), unfinished, 0);
  if (!fd) throw io_error(errno, "cannot make token counter " + file_);
  const ssize_t size = ::write(fd.get(), &page, sizeof page);
  int failed = size < 0 ? errno : 0;
  if (failed == 0 && static_cast<std::size_t>(size) != sizeof page) failed = ENOSPC;
  if (failed == 0 && ::fsync(fd.get()) != 0) failed = errno;
  // The counter appears whole or not at all, never has two names, and the first one wins.
  if (failed == 0 && ::renameat2(store_.root(), unfinished.c_str(), store_.root(), file_.c_str(),
                                 RENAME_NOREPLACE) != 0) {
    failed = errno;
  }
  if (failed != 0) ::unlinkat(store_.root(), unfinished.c_str(), 0);
  if (failed != 0 && failed != EEXIST && failed != ENOENT) {
    throw io_error(failed, "cannot make token counter " + file_);
  }
  if (failed == ENOENT) return;
  // Remove the old counters only when the new one survives a power cut.
  if (::fsync(store_.root()) != 0) throw io_error(errno, "cannot sync " + store_.path());
  for (const std::string& name : old) ::unlinkat(store_.root(), name.c_str(), 0);
}

void TokenCounter::check_still_there() {
  struct stat status {};
  if (::fstatat(store_.root(), file_.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      status.st_ino == inode_ && status.st_nlink == 1 &&
      status.st_size >= static_cast<off_t>(sizeof(TokenPage))) {
    return;
  }
  // The file was removed, replaced or cut short. open_or_make() refuses a counter that is below the
  // highest value seen.
  open_or_make();
}

std::uint64_t TokenCounter::allocate(std::uint32_t count) {
  check_still_there();
  if (const char* why = token_page_damage(snapshot(*page_))) refuse(file_, why);
  // Raise the limit first: if the disk fails, the counter must not have advanced.
  const std::uint64_t need = word(page_->next).load() + count;
  if (need > word(page_->confirmed).load()) confirm(need);
  const std::uint64_t first = word(page_->next).fetch_add(count);
  if (first < seen_) refuse(file_, "the token counter went back");
  seen_ = first + count;
  if (seen_ > word(page_->confirmed).load()) confirm(seen_);
  return first;
}

bool TokenCounter::handed_out(std::uint64_t end) {
  check_still_there();  // touching a file that was cut short is SIGBUS, and a replaced one is stale
  return end <= word(page_->next).load();
}

void TokenCounter::confirm(std::uint64_t limit) {
  raise_to(page_->pending, limit + kTokenBlock);
  const std::uint64_t wanted = word(page_->pending).load();
  // Every client syncs for itself and never waits for another client, which may be stopped.
  if (::msync(page_, kMapped, MS_SYNC) != 0) {
    throw io_error(errno, "cannot sync token counter " + file_);
  }
  raise_to(page_->confirmed, wanted);
}

}  // namespace baton::file
