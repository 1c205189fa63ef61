#include "file/store_dir.h"

#include "file/error.h"
#include "file/names.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <vector>

namespace baton::file {

namespace {

std::string strip_slashes(std::string path) {
  // Even with O_NOFOLLOW, open() follows the link in "link/".
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

std::vector<gid_t> own_groups() {
  std::vector<gid_t> groups(65'536);  // as many as a process can have
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
  groups.push_back(::getegid());
  return groups;
}

[[noreturn]] void refuse_missing(int errnum, const std::string& path) {
  const bool denied = errnum == EACCES || errnum == EPERM || errnum == EROFS;
  throw Error(
      denied ? Errc::permission_denied : Errc::connection_failed,
      "directory " + path + " is missing and cannot be created" +
          (errnum == ENOENT ? ", because its parent directory is missing: " : std::string(": ")) +
          std::generic_category().message(errnum));
}

[[noreturn]] void refuse_unopened(int errnum, const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode)) {
    throw Error(Errc::permission_denied,
                path + " is a symbolic link; name the directory it points to");
  }
  const bool denied = errnum == EACCES || errnum == EPERM;
  throw Error(denied ? Errc::permission_denied : Errc::connection_failed,
              "cannot open directory " + path + ": " + std::generic_category().message(errnum));
}

}  // namespace

StoreDir::StoreDir(const std::string& path) : path_(strip_slashes(path)) {
  const bool made = ::mkdir(path_.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) {
    const int errnum = errno;
    struct stat status {};
    // For an existing directory mkdir() may fail with EROFS or EACCES instead of EEXIST.
    if (::lstat(path_.c_str(), &status) != 0) refuse_missing(errnum, path_);
  }
  root_ = UniqueFd(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!root_) refuse_unopened(errno, path_);
  if (made && ::fchmod(root_.get(), 0700) != 0) throw io_error(errno, "cannot chmod " + path_);

  struct statfs file_system {};
  if (::fstatfs(root_.get(), &file_system) != 0) throw io_error(errno, "cannot examine " + path_);
  if (const auto name = refused_file_system(static_cast<unsigned long>(file_system.f_type))) {
    throw Error(Errc::unsupported, path_ + " is on " + std::string(*name) +
                                       ", which does not support these locks; use a local file "
                                       "system");
  }
  struct stat status {};
  if (::fstat(root_.get(), &status) != 0) throw io_error(errno, "cannot examine " + path_);
  const DirectoryVerdict verdict = check_directory(status, ::geteuid(), own_groups());
  if (verdict.refused) throw Error(*verdict.refused, path_ + " " + verdict.why);
  modes_ = verdict.modes;

  clients_ = subdirectory("clients");
  locks_ = subdirectory("locks");
  // Lock names that differ only in case are different locks, so their directories must differ, too.
  struct stat lower {};
  struct stat upper {};
  if (::fstat(clients_.get(), &lower) == 0 &&
      ::fstatat(root_.get(), "CLIENTS", &upper, AT_SYMLINK_NOFOLLOW) == 0 &&
      lower.st_ino == upper.st_ino && lower.st_dev == upper.st_dev) {
    throw Error(Errc::unsupported, path_ +
                                       " is on a file system that ignores upper and lower case; "
                                       "use a case-sensitive one");
  }
}

UniqueFd StoreDir::subdirectory(const char* name) const {
  if (!make_directory(root_.get(), name) && errno != EEXIST) {
    throw io_error(errno, "cannot make " + path_ + "/" + name);
  }
  UniqueFd fd = open_directory(root_.get(), name);
  if (!fd) throw io_error(errno, "cannot open directory " + path_ + "/" + name);
  return fd;
}

UniqueFd StoreDir::create_file(int directory, const std::string& name, int flags) const {
  constexpr int kCreate = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  // In a group's directory the file needs its final mode before it gets its name. The umask may
  // have removed the group's bits, and this process may be stopped before fchmod() sets them again.
  // Then other members of the group could not open the file.
  const std::string first = modes_.group ? std::string(kUnfinished) + hex16(random_u64()) : name;
  UniqueFd fd(::openat(directory, first.c_str(), kCreate | flags, modes_.file));
  if (!fd) {
    if (errno == EEXIST || errno == ENOENT) return fd;
    throw io_error(errno, "cannot make file " + name);
  }
  int failed = 0;
  if (::fchmod(fd.get(), modes_.file) != 0) failed = errno;
  if (failed == 0 && modes_.group &&
      ::renameat2(directory, first.c_str(), directory, name.c_str(), RENAME_NOREPLACE) != 0) {
    failed = errno;
  }
  if (failed == 0) return fd;
  ::unlinkat(directory, first.c_str(), 0);
  fd.reset();
  errno = failed;
  if (failed == EEXIST || failed == ENOENT) return fd;
  throw io_error(failed, "cannot make file " + name);
}

bool StoreDir::make_directory(int parent, const std::string& name) const {
  // The directory usually exists, and fstatat() costs less than making a temporary one.
  struct stat status {};
  if (::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
    errno = EEXIST;
    return false;
  }
  const std::string first = modes_.group ? std::string(kUnfinished) + hex16(random_u64()) : name;
  int failed = 0;
  if (::mkdirat(parent, first.c_str(), modes_.directory) != 0) {
    if (errno == EEXIST || errno == ENOENT) return false;
    throw io_error(errno, "cannot make directory " + name);
  }
  if (modes_.group) {
    // By descriptor: in a shared directory another user may have replaced it by a link.
    const UniqueFd made = open_directory(parent, first.c_str());
    struct stat mine {};
    if (!made || ::fstat(made.get(), &mine) != 0) failed = errno;
    if (failed == 0 && mine.st_uid != ::geteuid()) failed = EACCES;
    if (failed == 0 && ::fchmod(made.get(), modes_.directory) != 0) failed = errno;
    if (failed == 0 &&
        ::renameat2(parent, first.c_str(), parent, name.c_str(), RENAME_NOREPLACE) != 0) {
      failed = errno;
    }
    if (failed != 0) ::unlinkat(parent, first.c_str(), AT_REMOVEDIR);
  } else if (::fchmodat(parent, first.c_str(), modes_.directory, 0) != 0 && errno != ENOENT) {
    failed = errno;
  }
  if (failed == 0) return true;
  errno = failed;
  if (failed == EEXIST || failed == ENOENT) return false;
  throw io_error(failed, "cannot make directory " + name);
}

UniqueFd open_directory(int parent, const char* name) noexcept {
  return UniqueFd(::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool for_each_entry(int directory, const std::function<void(std::string_view)>& visit) {
  // Open the directory again instead of rewinding: some kernels show no new entries after a rewind,
  // and rule 1 of the lock queue needs all of them.
  const UniqueFd fresh(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fresh) {
    if (errno == ENOENT) return false;  // the directory was removed while it was open
    throw io_error(errno, "cannot read a directory");
  }
  alignas(dirent64) char buffer[8192];
  for (;;) {
    const ssize_t size = ::getdents64(fresh.get(), buffer, sizeof buffer);
    if (size == 0) return true;
    if (size < 0) {
      if (errno == ENOENT) return false;  // the directory was removed while it was open
      throw io_error(errno, "cannot read a directory");
    }
    for (ssize_t at = 0; at < size;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer + at);
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") visit(name);
      at += entry->d_reclen;
    }
  }
}

struct stat check_plain_file(int fd, const std::string& name) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw io_error(errno, "cannot examine " + name);
  if (!S_ISREG(status.st_mode)) throw damaged(name + " is not a plain file");
  if (status.st_nlink > 1) throw damaged(name + " has a second name (hard link); refused");
  return status;
}

}  // namespace baton::file
