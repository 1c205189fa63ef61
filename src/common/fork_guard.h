// Fork safety: who am I, and which descriptors must a forked child close at once.
#pragma once

#include <cstdint>

namespace baton::internal {

// Changes in the child of every fork (pthread_atfork). Remember it when opening something; if it
// differs later, this process is a fork: touch no mutex, no thread, no store. Async-signal-safe.
std::uint64_t fork_generation() noexcept;

// Owns a descriptor that a forked child closes at once, in the atfork handler: an OFD lock lives
// until the last copy of its descriptor is closed. Never unlocks.
class ForkClosedFd {
 public:
  ForkClosedFd() noexcept = default;
  explicit ForkClosedFd(int fd);  // takes fd over
  ForkClosedFd(ForkClosedFd&& other) noexcept;
  ForkClosedFd& operator=(ForkClosedFd&& other) noexcept;
  ~ForkClosedFd();
  int get() const noexcept { return fd_; }
  void reset() noexcept;  // closes; in a forked child only forgets (it is closed already)

 private:
  int fd_ = -1;
  std::uint64_t generation_ = 0;
};

}  // namespace baton::internal
