#include "file/lock_dir.h"

#include "file/error.h"
#include "file/names.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace baton::file {

LockDir::LockDir(const StoreDir& store, const LockName& name)
    : store_(store), directories_(lock_directories(name)) {
  for (const std::string& directory : directories_) {
    if (!path_.empty()) path_ += '/';
    path_ += directory;
  }
}

bool LockDir::open() {
  if (fd_) return true;
  UniqueFd fd;
  int parent = store_.locks();
  // Open each component separately: O_NOFOLLOW checks only the last component of a path.
  for (const std::string& directory : directories_) {
    UniqueFd next = open_directory(parent, directory.c_str());
    if (!next) {
      if (errno == ENOENT) return false;
      throw io_error(errno, "cannot open directory locks/" + path_);
    }
    fd = std::move(next);
    parent = fd.get();
  }
  fd_ = std::move(fd);
  return true;
}

void LockDir::create() {
  // Another client that found the directory empty may remove it between two steps. Then retry from
  // the top.
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (open() || try_create()) return;
  }
  throw damaged("cannot make directory locks/" + path_ + ": another process keeps removing it");
}

bool LockDir::try_create() {
  UniqueFd fd;
  int parent = store_.locks();
  for (const std::string& directory : directories_) {
    if (!store_.make_directory(parent, directory) && errno != EEXIST) return false;
    UniqueFd next = open_directory(parent, directory.c_str());
    if (!next) {
      if (errno == ENOENT) return false;
      throw io_error(errno, "cannot open directory locks/" + path_);
    }
    fd = std::move(next);
    parent = fd.get();
  }
  fd_ = std::move(fd);
  return true;
}

bool LockDir::stat_file(const std::string& file, struct stat& status) const {
  const std::string path = path_ + "/" + file;
  if (::fstatat(store_.locks(), path.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  throw io_error(errno, "cannot examine locks/" + path);
}

void LockDir::remove() noexcept {
  close();
  std::string path = path_;
  // rmdir removes only an empty directory, and no process can make a file in a removed one.
  while (::unlinkat(store_.locks(), path.c_str(), AT_REMOVEDIR) == 0) {
    const std::size_t slash = path.rfind('/');
    if (slash == path.npos) return;
    path.resize(slash);
  }
}

}  // namespace baton::file
