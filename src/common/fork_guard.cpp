#include "common/fork_guard.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <set>
#include <utility>

namespace baton::internal {

namespace {

// Never destroyed: handlers may run during exit.
struct Registry {
  std::mutex mutex;
  std::set<int> fds;
  std::atomic<std::uint64_t> generation{1};
};

Registry& registry() {
  static auto* const instance = new Registry;  // NOLINT: lives as long as the process
  return *instance;
}

void before_fork() { registry().mutex.lock(); }
void after_fork_in_parent() { registry().mutex.unlock(); }
void after_fork_in_child() {
  Registry& r = registry();
  r.generation.fetch_add(1, std::memory_order_relaxed);
  // close only: unlocking would free the parent's locks, keeping a copy would make them immortal.
  for (const int fd : r.fds) ::close(fd);
  r.fds.clear();
  r.mutex.unlock();
}

void install_once() {
  static std::once_flag once;
  std::call_once(once,
                 [] { pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); });
}

}  // namespace

std::uint64_t fork_generation() noexcept {
  install_once();
  return registry().generation.load(std::memory_order_relaxed);
}

ForkClosedFd::HoldForks::HoldForks() {
  install_once();
  registry().mutex.lock();
}
ForkClosedFd::HoldForks::~HoldForks() { registry().mutex.unlock(); }

ForkClosedFd::ForkClosedFd(int fd, const HoldForks&) : fd_(fd), generation_(fork_generation()) {
  if (fd >= 0) registry().fds.insert(fd);
}

ForkClosedFd::ForkClosedFd(ForkClosedFd&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), generation_(other.generation_) {}

ForkClosedFd& ForkClosedFd::operator=(ForkClosedFd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
    generation_ = other.generation_;
  }
  return *this;
}

ForkClosedFd::~ForkClosedFd() { reset(); }

void ForkClosedFd::reset() noexcept {
  if (fd_ < 0) return;
  const int fd = std::exchange(fd_, -1);
  if (generation_ != fork_generation())
    return;  // closed in the child already; may be another's now
  const std::lock_guard guard(registry().mutex);
  registry().fds.erase(fd);
  ::close(fd);
}

}  // namespace baton::internal
