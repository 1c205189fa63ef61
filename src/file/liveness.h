// Liveness: shows other clients that this client lives, and owns the bell that wakes it.
#pragma once

#include "common/base/fork_guard.h"
#include "file/names.h"
#include "file/store_dir.h"

#include <string>

namespace baton::file {

// The liveness file is under an OFD write lock, which the kernel drops when the last copy of the
// descriptor is closed. The bell is a FIFO: other clients write to it when this client should look
// at its tickets. A random id of this client is part of both names.
class Liveness {
 public:
  // Locks the file before it gets its final name, so other clients never see it unlocked while this
  // client lives. Throws Error.
  Liveness(const StoreDir& store, const std::string& label);
  ~Liveness();  // closes the descriptors; the next sweep removes the files

  ClientId id() const noexcept { return id_; }
  int descriptor() const noexcept { return file_.get(); }
  int bell() const noexcept { return bell_.get(); }

  // Moves the liveness descriptor to a number above that one. When a process dies, the kernel
  // closes the highest number first. Closing an inotify takes milliseconds, so the liveness
  // descriptor must be closed before it.
  void move_above(int descriptor);

  // Reads at most `limit` hashes of lock names from the bell. Returns how many it read.
  std::size_t drain_bell(std::uint64_t* hashes, std::size_t limit) noexcept;

  void close() noexcept;         // from here on this client counts as dead
  void remove_files() noexcept;  // only when no ticket of this client is left

 private:
  bool try_make(const std::string& label);

  const StoreDir& store_;
  ClientId id_{};
  ForkClosedFd file_;
  ForkClosedFd bell_;  // a copy in a forked child would look like a client that reads its bell
};

enum class Alive { yes, no, unknown };

// Whether the client with that file (c.<id> or t.<id>) lives. A missing file means no. Unknown: the
// file could not be tested (no descriptors left, not readable).
Alive test_liveness(int clients, char kind, ClientId id) noexcept;

// The label that the client gave itself; empty if it cannot be read.
std::string read_label(int clients, ClientId id);

enum class Rung { heard, dead, unknown };

// Writes to a client's bell. A full bell counts as heard: its reader then looks at all its locks.
Rung ring_bell(int clients, ClientId id, std::uint64_t hash) noexcept;

}  // namespace baton::file
