// LockDir: creates, opens and removes the directory that contains the queue files of one lock.
#pragma once

#include "common/seam/ticket.h"
#include "common/base/unique_fd.h"
#include "file/store_dir.h"

#include <sys/stat.h>

#include <string>
#include <vector>

namespace baton::file {

class LockDir {
 public:
  LockDir(const StoreDir& store, const LockName& name);

  bool open();    // false: the directory does not exist. Throws Error.
  void create();  // opens the directory and makes it if it is missing. Throws Error.
  void close() noexcept { fd_.reset(); }
  bool is_open() const noexcept { return static_cast<bool>(fd_); }
  int get() const noexcept { return fd_.get(); }

  // By path, not by descriptor, because the result must describe the file that has the name now.
  // False: no file has it.
  bool stat_file(const std::string& file, struct stat& status) const;
  // Removes the directory and those of its parents that are empty.
  void remove() noexcept;

  const StoreDir& store() const noexcept { return store_; }

 private:
  bool try_create();

  const StoreDir& store_;
  const std::vector<std::string> directories_;
  std::string path_;  // below locks/
  UniqueFd fd_;
};

}  // namespace baton::file
