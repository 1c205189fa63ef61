// LockDir: the directory of one lock's queue files, which comes and goes.
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

  bool open();    // false: there is none. Throws Error.
  void create();  // opens it, and makes it if it is missing. Throws Error.
  void close() noexcept { fd_.reset(); }
  bool is_open() const noexcept { return static_cast<bool>(fd_); }
  int get() const noexcept { return fd_.get(); }

  // By path, not by descriptor: tells what the name means now. False: nothing.
  bool stat_file(const std::string& file, struct stat& status) const;
  // Removes the directory and its empty parents, as far as nobody uses them.
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
