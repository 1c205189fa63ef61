// Fork safety: detects that this process is a forked copy, and closes descriptors that a forked
// child must not keep.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace baton::internal {

namespace fork_guard {
// Points to a word in a page that the kernel fills with zeros in every copy of this process. Null
// until the guard is made (when the library is loaded), and null where the kernel cannot wipe
// pages.
extern std::atomic<const std::atomic<std::uint64_t>*> mark;
std::uint64_t find_generation() noexcept;
void rely_on_process_id() noexcept;  // for tests: behave as if the kernel cannot wipe pages
struct Slot;
}  // namespace fork_guard

// A number that differs between a process and its forked children, whether a child was made by
// fork(), _Fork() or clone(). A child that shares the memory of its parent (vfork, posix_spawn) is
// not a copy and has the same number. Store the number when you open something. If it differs
// later, this process is a copy: touch no mutex, no thread, no store. Costs two loads.
// Async-signal-safe.
inline std::uint64_t fork_generation() noexcept {
  if (const auto* const mark = fork_guard::mark.load(std::memory_order_acquire)) {
    if (const auto known = mark->load(std::memory_order_relaxed); known != 0) return known;
  }
  return fork_guard::find_generation();
}

// Owns a descriptor that a forked child closes. Reason: an OFD lock lives until the last copy of
// its descriptor is closed. The child of fork() closes it before fork() returns. A child of _Fork()
// or clone() closes it in its first call of fork_generation(), because no code of baton runs
// earlier there. Never unlocks.
class ForkClosedFd {
 public:
  ForkClosedFd() noexcept = default;
  // Calls `open`, which returns a descriptor or -1, or throws. fork() in other threads waits until
  // the descriptor is registered: a child made in between would inherit a copy that stays open. So
  // `open` must not wait for a disk: it must not create a file or a directory entry, and must not
  // read a directory.
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
  void reset() noexcept;  // closes it; in a forked child it is closed already and only forgotten

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
  fork_guard::Slot* slot_ = nullptr;
};

// The T of this process, made at the first call and never destroyed. A forked child gets a new T:
// in the copy of its parent's T, mutexes may be locked by threads that the child does not have.
// There is one object for each type T, so every use needs its own type.
template <class T>
T& per_process() {
  struct Made {
    std::uint64_t generation;
    T value{};
  };
  static constinit std::atomic<Made*> current{nullptr};
  const std::uint64_t generation = fork_generation();
  Made* made = current.load(std::memory_order_acquire);
  if (made != nullptr && made->generation == generation) return made->value;
  auto* const fresh = new Made{generation};  // NOLINT: lives as long as the process
  for (;;) {
    if (current.compare_exchange_strong(made, fresh, std::memory_order_acq_rel)) {
      return fresh->value;
    }
    if (made != nullptr && made->generation == generation) {
      delete fresh;  // NOLINT: another thread was first
      return made->value;
    }
  }
}

}  // namespace baton::internal
