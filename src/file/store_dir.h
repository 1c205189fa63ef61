// StoreDir: opens the directory of a file store, and makes files and directories in it.
#pragma once

#include "common/base/unique_fd.h"
#include "file/fs_check.h"

#include <sys/stat.h>

#include <functional>
#include <string>
#include <string_view>

namespace baton::file {

class StoreDir {
 public:
  // Makes the last component of path if it is missing, opens and checks it. Throws Error.
  explicit StoreDir(const std::string& path);

  const std::string& path() const noexcept { return path_; }
  int root() const noexcept { return root_.get(); }
  int clients() const noexcept { return clients_.get(); }
  int locks() const noexcept { return locks_.get(); }
  const StoreModes& modes() const noexcept { return modes_; }

  // Makes a new file and opens it for reading and writing with the extra flags. The file has its
  // final mode, whatever the umask; in a group's directory it has this mode before other clients
  // can see its name. Throws Error; EEXIST and ENOENT (the directory was removed) give -1 and errno
  // instead.
  UniqueFd create_file(int directory, const std::string& name, int flags) const;
  // False with errno EEXIST or ENOENT; throws Error for all else.
  bool make_directory(int parent, const std::string& name) const;

 private:
  UniqueFd subdirectory(const char* name) const;

  std::string path_;
  StoreModes modes_;
  UniqueFd root_;
  UniqueFd clients_;
  UniqueFd locks_;
};

// Opens a directory without following a link; -1 and errno.
UniqueFd open_directory(int parent, const char* name) noexcept;

// Calls visit for each name but "." and "..". False: the directory was removed, so it has no
// entries and never will.
bool for_each_entry(int directory, const std::function<void(std::string_view)>& visit);

// Throws Error(store_error) unless fd is a plain file with at most one name. Through a hard link,
// baton would write to the file of another user. A file without a name (unlinked since) is
// accepted.
struct stat check_plain_file(int fd, const std::string& name);

// The prefix of unfinished files and directories. A sweep may remove them.
inline constexpr std::string_view kUnfinished = ",new.";

}  // namespace baton::file
