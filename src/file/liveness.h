// Liveness: how others know that this client lives, and its bell.
#pragma once

#include "common/base/fork_guard.h"
#include "file/names.h"
#include "file/store_dir.h"

#include <string>

namespace baton::file {

// A file under an OFD write lock that the kernel drops when the last copy of the descriptor is
// closed, and a FIFO that others write to when they want us to look. Both named by a fresh id.
class Liveness {
 public:
  // The file is locked before it gets its name: nobody ever sees it unlocked while we live. Throws.
  Liveness(const StoreDir& store, const std::string& label);
  ~Liveness();  // closes; leaves the files to whoever sweeps

  ClientId id() const noexcept { return id_; }
  int descriptor() const noexcept { return file_.get(); }
  int bell() const noexcept { return bell_.get(); }

  // Moves the descriptor to a number above that one. When a process dies, the kernel closes the
  // highest number first, and closing an inotify takes milliseconds: ours must go before it.
  void move_above(int descriptor);

  // Reads what the bell said: hashes of lock names; at most `limit` of them. Returns how many.
  std::size_t drain_bell(std::uint64_t* hashes, std::size_t limit) noexcept;

  void close() noexcept;         // dead to all others from here on
  void remove_files() noexcept;  // our tickets are withdrawn: nobody needs to know us any more

 private:
  bool try_make(const std::string& label);

  const StoreDir& store_;
  ClientId id_{};
  ForkClosedFd file_;
  ForkClosedFd bell_;  // a copy in a forked child would look like a client that listens
};

enum class Alive { yes, no, unknown };

// Whether the client with that file (c.<id> or t.<id>) lives. A missing file: no. Unknown: it could
// not be tested (no descriptors left, not readable).
Alive test_liveness(int clients, char kind, ClientId id) noexcept;

// What the client calls itself; empty if that cannot be read.
std::string read_label(int clients, ClientId id);

enum class Rung { heard, dead, unknown };

// Writes to a client's bell. A full bell counts as heard.
Rung ring_bell(int clients, ClientId id, std::uint64_t hash) noexcept;

}  // namespace baton::file
