// StoreDir: the open directory of a file store, and how files and directories are made in it.
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

  // A new file, open for reading and writing with the extra flags. It has its final mode as soon as
  // it can be seen under its name, whatever the umask. Throws Error; EEXIST and ENOENT (the
  // directory was removed) give -1 and errno instead.
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

// Calls visit for each name but "." and "..", and tells whether the directory is still there: one
// that was removed has nothing and never will. Not for two callers of one descriptor at a time.
bool for_each_entry(int directory, const std::function<void(std::string_view)>& visit);

// Error(store_error) unless fd is a plain file with exactly one name: a link would let somebody
// else's file be written. A file whose name is already gone is fine (zero names).
struct stat check_plain_file(int fd, const std::string& name);

// The prefix of things in the making, which whoever sweeps may remove.
inline constexpr std::string_view kUnfinished = ",new.";

}  // namespace baton::file
