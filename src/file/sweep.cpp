#include "file/sweep.h"

#include "common/seam/lock_name.h"
#include "common/base/unique_fd.h"
#include "file/error.h"
#include "file/names.h"
#include "file/liveness.h"
#include "file/lock_queue.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <string>
#include <vector>

namespace baton::file {

namespace {

std::vector<std::string> names_in(int directory) {
  std::vector<std::string> names;
  for_each_entry(directory, [&](std::string_view name) { names.emplace_back(name); });
  return names;
}

bool walk(int directory, const std::string& path, std::string_view prefix,
          const std::function<bool(const LockName&)>& visit) {
  for (const std::string& name : names_in(directory)) {
    if (!name.ends_with(',')) {
      const auto lock = parse_lock_name(path + name);
      if (lock && lock->text().starts_with(prefix) && !visit(*lock)) return false;
      continue;
    }
    const std::string below = path + name.substr(0, name.size() - 1) + "/";
    const std::string_view common = std::string_view(below).substr(0, prefix.size());
    if (!prefix.starts_with(common)) continue;
    const UniqueFd next = open_directory(directory, name.c_str());
    if (!next) {
      if (errno == ENOENT) continue;
      throw io_error(errno, "cannot open directory locks/" + below);
    }
    if (!walk(next.get(), below, prefix, visit)) return false;
  }
  return true;
}

// Removes unfinished files and directories that are older than one second: their makers were killed
// or are stopped. A maker that continues gets ENOENT. An unfinished directory is always empty.
void remove_unfinished(int directory) {
  for (const std::string& name : names_in(directory)) {
    struct stat status {};
    if (!name.starts_with(kUnfinished)) continue;
    if (::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (status.st_mtime + 1 >= ::time(nullptr)) continue;
    ::unlinkat(directory, name.c_str(), S_ISDIR(status.st_mode) ? AT_REMOVEDIR : 0);
  }
}

// Removes directories without a lock. They are left when a client is killed while it removes the
// last lock in them.
void remove_empty_directories(int directory) {
  for (const std::string& name : names_in(directory)) {
    if (const UniqueFd below = open_directory(directory, name.c_str())) {
      if (name.ends_with(',')) remove_empty_directories(below.get());
      ::unlinkat(directory, name.c_str(), AT_REMOVEDIR);  // fails unless empty
    }
  }
}

struct Census {
  std::vector<std::string> left_behind;  // files of dead clients
  bool others = false;                   // another client lives
};

Census take_census(const StoreDir& store, ClientId own) {
  Census census;
  const int clients = store.clients();
  for (const std::string& name : names_in(clients)) {
    for (const char kind : {'c', 't', 'b'}) {
      const auto id = parse_client_file_name(kind, name);
      if (!id || *id == own) continue;
      // A bell belongs to the client of the same id, whose file is c.<id> or still t.<id>. Test c
      // twice, because the file may be renamed from t to c between the first two tests.
      const bool lives = kind == 'b' ? test_liveness(clients, 'c', *id) != Alive::no ||
                                           test_liveness(clients, 't', *id) != Alive::no ||
                                           test_liveness(clients, 'c', *id) != Alive::no
                                     : test_liveness(clients, kind, *id) != Alive::no;
      if (!lives) census.left_behind.push_back(name);
      census.others = census.others || lives;
    }
  }
  return census;
}

void sweep_or_throw(const StoreDir& store, Clients& clients, const Clock& clock, Time deadline) {
  clients.new_look();
  const Census census = take_census(store, clients.own());
  if (census.left_behind.empty() && census.others) return;
  const bool complete = for_each_lock(store, "", [&](const LockName& name) {
    try {
      LockQueue(store, nullptr, clients, name).remove_if_unused();
    } catch (const Error&) {
      // Clients that use this lock get the error.
    }
    return clock.now() < deadline;
  });
  if (!complete) return;
  remove_empty_directories(store.locks());
  remove_unfinished(store.root());
  remove_unfinished(store.clients());
  remove_unfinished(store.locks());
  for (const std::string& name : census.left_behind) {
    ::unlinkat(store.clients(), name.c_str(), 0);
  }
}

}  // namespace

bool for_each_lock(const StoreDir& store, std::string_view prefix,
                   const std::function<bool(const LockName&)>& visit) {
  return walk(store.locks(), "", prefix, visit);
}

void sweep(const StoreDir& store, Clients& clients, const Clock& clock, Time deadline) noexcept {
  try {
    sweep_or_throw(store, clients, clock, deadline);
  } catch (const std::exception&) {
    // The next sweep retries.
  }
}

}  // namespace baton::file
