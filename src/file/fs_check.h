// Which directories may carry a store. Pure: numbers in, verdict out.
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

// The name of a file system (by fstatfs f_type) that cannot carry a store, or nothing. Refused is
// whatever may be mounted on two machines, or does not keep the kernel's lock and append rules.
std::optional<std::string_view> refused_file_system(unsigned long magic) noexcept;

// How files of a store are made.
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

// Who may own a store: ourselves alone, or a group on purpose (mode 2770), if we own the directory
// or are in its group. (Root may open every directory: that it can is no reason to trust it.) A
// directory that others can write to lets them take and end every lock. groups: all of ours.
DirectoryVerdict check_directory(const struct stat& status, uid_t euid,
                                 const std::vector<gid_t>& groups);

}  // namespace baton::file
