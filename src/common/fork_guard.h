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
  // Opens with `open`, which returns a descriptor, or -1, or throws. No other thread forks
  // meanwhile: between opening and registering, a child would inherit a copy that nobody closes.
  template <class F>
  static ForkClosedFd make(F&& open) {
    const HoldForks held;
    return ForkClosedFd(open(), held);
  }
  ForkClosedFd(ForkClosedFd&& other) noexcept;
  ForkClosedFd& operator=(ForkClosedFd&& other) noexcept;
  ~ForkClosedFd();
  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  void reset() noexcept;  // closes; in a forked child only forgets (it is closed already)

 private:
  struct HoldForks {
    HoldForks();
    ~HoldForks();
    HoldForks(const HoldForks&) = delete;
    HoldForks& operator=(const HoldForks&) = delete;
  };
  ForkClosedFd(int fd, const HoldForks&);

  int fd_ = -1;
  std::uint64_t generation_ = 0;
};

}  // namespace baton::internal
