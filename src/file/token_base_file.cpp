#include "file/token_base_file.h"

#include "common/seam/token_base.h"
#include "common/base/unique_fd.h"
#include "file/error.h"
#include "file/names.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string>

namespace baton::file {

namespace {
constexpr const char* kBaseFile = "token_base";
}  // namespace

std::optional<std::uint64_t> find_token_base(const StoreDir& store) {
  const std::string what = store.path() + "/" + kBaseFile;
  const UniqueFd fd(
      ::openat(store.root(), kBaseFile, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    if (errno == ENOENT) return std::nullopt;
    if (errno == ELOOP) throw damaged(what + " is a symbolic link");
    throw io_error(errno, "cannot open " + what);
  }
  check_plain_file(fd.get(), what);
  std::array<char, 64> text{};
  const ssize_t size = ::pread(fd.get(), text.data(), text.size(), 0);
  if (size < 0) throw io_error(errno, "cannot read " + what);
  std::string_view record(text.data(), static_cast<std::size_t>(size));
  if (record.ends_with('\n')) record.remove_suffix(1);
  const std::uint64_t base = read_token_base(record, what).value();
  // The client that wrote the record may have been stopped before its name was on the disk. After a
  // power cut the record would be gone, and tokens would be given out without the base.
  if (::fsync(store.root()) != 0) throw io_error(errno, "cannot sync " + store.path());
  return base;
}

void record_token_base(const StoreDir& store, std::uint64_t base) {
  const std::string unfinished = std::string(kUnfinished) + hex16(random_u64());
  const std::string record = encode_token_base(base) + "\n";
  const UniqueFd fd = store.create_file(store.root(), unfinished, 0);
  if (!fd) throw io_error(errno, "cannot make " + store.path() + "/" + kBaseFile);
  const ssize_t size = ::write(fd.get(), record.data(), record.size());
  int failed = size < 0 ? errno : 0;
  if (failed == 0 && static_cast<std::size_t>(size) != record.size()) failed = ENOSPC;
  if (failed == 0 && ::fsync(fd.get()) != 0) failed = errno;
  // The record appears whole or not at all, never has two names, and the first one wins.
  if (failed == 0 && ::renameat2(store.root(), unfinished.c_str(), store.root(), kBaseFile,
                                 RENAME_NOREPLACE) != 0) {
    failed = errno;
  }
  if (failed != 0) ::unlinkat(store.root(), unfinished.c_str(), 0);
  if (failed != 0 && failed != EEXIST) {
    throw io_error(failed, "cannot make " + store.path() + "/" + kBaseFile);
  }
}

}  // namespace baton::file
