// Fork safety: is this still the process that opened it, and which descriptors must a forked child
// close at once.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace baton::internal {

namespace fork_guard {
// A word in a page that the kernel fills with zeros in every copy of this process. Null before the
// first question, and where the kernel cannot wipe pages.
extern std::atomic<const std::atomic<std::uint64_t>*> mark;
std::uint64_t find_generation() noexcept;
void rely_on_process_id() noexcept;  // for tests: as where the kernel cannot wipe pages
struct Slot;
}  // namespace fork_guard

// Another number in each process. A child has a new one however it was made: by fork(), by _Fork()
// or by clone(). A child that shares our memory (vfork, posix_spawn) is no copy and has ours.
// Remember it when opening something. If it differs later, this process is a copy: touch no mutex,
// no thread, no store. Costs two loads. Async-signal-safe.
inline std::uint64_t fork_generation() noexcept {
  if (const auto* const mark = fork_guard::mark.load(std::memory_order_acquire)) {
    if (const auto known = mark->load(std::memory_order_relaxed); known != 0) return known;
  }
  return fork_guard::find_generation();
}

// Owns a descriptor that a forked child closes: an OFD lock lives until the last copy of its
// descriptor is closed. The child of fork() closes it before fork() returns. A child of _Fork() or
// clone() closes it at its first question to fork_generation(): no code of ours runs earlier there.
// Never unlocks.
class ForkClosedFd {
 public:
  ForkClosedFd() noexcept = default;
  // Opens with `open`, which returns a descriptor, or -1, or throws. fork() waits meanwhile:
  // between opening and registering, a child would inherit a copy that stays open. So `open` must
  // not wait for a disk: it makes no file, no directory entry, and reads no directory.
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
  fork_guard::Slot* slot_ = nullptr;
};

// The T of this process, made at the first question and never destroyed. A forked child gets a new
// one: in its copy of the parent's, mutexes may be locked by threads that the child does not have.
// One T for each type: give it a type of its own.
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
