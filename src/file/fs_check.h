// Decides which directories may contain a store. Pure functions, no I/O.
#pragma once

#include "file/namespace.h"

#include <baton/error.h>

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baton::file {

// The name of the file system (by f_type of fstatfs) if it cannot contain a store, or nothing. A
// file system is refused if two machines can mount it, or if it does not follow the kernel's rules
// for locks and appends.
std::optional<std::string_view> refused_file_system(unsigned long magic) noexcept;

// The modes of new files and directories of a store.
struct StoreModes {
  mode_t file = 0600;
  mode_t directory = 0700;
  bool group = false;  // a directory that was made for a group: setgid, rwx for the group
};

struct DirectoryVerdict {
  std::optional<Errc> refused;
  std::string why;
  StoreModes modes;
};

// Accepts a directory of this user alone, or a directory made for a group (mode 2770) if this user
// owns it or is a member of the group. Any other user with write permission could take and end
// every lock. Root gets no exception: root can open every directory, but must not trust every
// directory. groups: all groups of this process.
DirectoryVerdict check_directory(const struct stat& status, uid_t euid,
                                 const std::vector<gid_t>& groups);

}  // namespace baton::file
