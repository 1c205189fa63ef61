#include "common/base/fork_guard.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

namespace baton::internal {

namespace fork_guard {

constinit std::atomic<const std::atomic<std::uint64_t>*> mark{nullptr};

// A registered descriptor. _Fork() may copy it at any moment, and the child then reads the copy. So
// `fd` is written last and cleared first.
struct Slot {
  std::atomic<int> fd{-1};
  std::uint64_t generation = 0;
  dev_t device = 0;
  ino_t inode = 0;
};

namespace {

// In a child the kernel fills it with zeros: no generation, and a mutex that is not locked.
struct Page {
  std::atomic<std::uint64_t> generation;
  pthread_mutex_t mutex;
};

struct Chunk {
  std::array<Slot, 64> slots;
  std::atomic<Chunk*> next{nullptr};
};

void before_fork();
void after_fork_in_parent();
void after_fork_in_child();

// Never destroyed: handlers may run during exit.
struct Guard {
  Guard() {
    void* const memory =
        ::mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) {
      page = static_cast<Page*>(memory);
      wiped = ::madvise(memory, sizeof(Page), MADV_WIPEONFORK) == 0;
    } else {
      page = static_cast<Page*>(::operator new(sizeof(Page)));
    }
    begin(1);
    pid = ::getpid();
    if (wiped) mark.store(&page->generation, std::memory_order_release);
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  }

  void begin(std::uint64_t generation) noexcept {
    page->mutex = pthread_mutex_t PTHREAD_MUTEX_INITIALIZER;
    page->generation.store(generation, std::memory_order_release);
  }

  Page* page = nullptr;
  bool wiped = false;         // whether the kernel wipes the page in a child
  std::atomic<pid_t> pid{0};  // if not wiped: another process id means that this is a child
  std::atomic<std::uint64_t> last{1};
  Chunk first;
};

Guard& guard() {
  static auto* const instance = new Guard;  // NOLINT: lives as long as the process
  return *instance;
}

// Made at load time, before there are threads. Otherwise a fork could copy a half-made guard.
[[maybe_unused]] const Guard& made_at_load = guard();

bool still_there(const Slot& slot, int fd) noexcept {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && status.st_dev == slot.device && status.st_ino == slot.inode;
}

// Only closes. Unlocking would free the parent's locks, and a copy that stays open would keep them
// locked after the parent has ended. The number may belong to another file by now, so the file is
// compared first: the parent was closing it, or the child closed all inherited descriptors and
// opened others before its first call of fork_generation().
void close_inherited(Guard& g, std::uint64_t generation) noexcept {
  for (Chunk* c = &g.first; c != nullptr; c = c->next.load(std::memory_order_acquire)) {
    for (Slot& slot : c->slots) {
      const int fd = slot.fd.load(std::memory_order_acquire);
      if (fd < 0 || slot.generation == generation) continue;
      if (still_there(slot, fd)) ::close(fd);
      slot.fd.store(-1, std::memory_order_release);
    }
  }
}

void before_fork() { pthread_mutex_lock(&guard().page->mutex); }
void after_fork_in_parent() { pthread_mutex_unlock(&guard().page->mutex); }
void after_fork_in_child() {
  Guard& g = guard();
  if (!g.wiped) g.pid.store(0);
  fork_generation();
}

// The caller holds the mutex.
Slot& free_slot(Guard& g) {
  for (Chunk* c = &g.first;; c = c->next.load(std::memory_order_acquire)) {
    for (Slot& slot : c->slots) {
      if (slot.fd.load(std::memory_order_acquire) < 0) return slot;
    }
    if (c->next.load(std::memory_order_acquire) == nullptr) {
      c->next.store(new Chunk, std::memory_order_release);  // NOLINT: never freed, reused
    }
  }
}

}  // namespace

std::uint64_t find_generation() noexcept {
  Guard& g = guard();
  std::uint64_t known = g.page->generation.load(std::memory_order_acquire);
  const bool copied = g.wiped ? known == 0 : g.pid.load() != ::getpid();
  if (!copied) return known;
  const std::uint64_t fresh = g.last.fetch_add(1) + 1;
  if (!g.page->generation.compare_exchange_strong(known, fresh)) return known;
  if (!g.wiped) {
    g.begin(fresh);
    g.pid.store(::getpid());
  }
  close_inherited(g, fresh);
  return fresh;
}

void rely_on_process_id() noexcept {
  Guard& g = guard();
  ::madvise(g.page, sizeof(Page), MADV_KEEPONFORK);
  g.wiped = false;
  mark.store(nullptr, std::memory_order_release);
}

}  // namespace fork_guard

ForkClosedFd::HoldForks::HoldForks() {
  fork_generation();  // in a child: resets the mutex and closes inherited descriptors
  pthread_mutex_lock(&fork_guard::guard().page->mutex);
}
ForkClosedFd::HoldForks::~HoldForks() { pthread_mutex_unlock(&fork_guard::guard().page->mutex); }

ForkClosedFd::ForkClosedFd(int fd, const HoldForks&) : generation_(fork_generation()) {
  if (fd < 0) return;
  struct stat status {};
  try {
    if (::fstat(fd, &status) != 0) {
      throw std::system_error(errno, std::generic_category(), "fstat");
    }
    slot_ = &fork_guard::free_slot(fork_guard::guard());
  } catch (...) {
    ::close(fd);
    throw;
  }
  slot_->generation = generation_;
  slot_->device = status.st_dev;
  slot_->inode = status.st_ino;
  slot_->fd.store(fd, std::memory_order_release);
  fd_ = fd;
}

ForkClosedFd::ForkClosedFd(ForkClosedFd&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      generation_(other.generation_),
      slot_(std::exchange(other.slot_, nullptr)) {}

ForkClosedFd& ForkClosedFd::operator=(ForkClosedFd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
    generation_ = other.generation_;
    slot_ = std::exchange(other.slot_, nullptr);
  }
  return *this;
}

ForkClosedFd::~ForkClosedFd() { reset(); }

void ForkClosedFd::reset() noexcept {
  if (fd_ < 0) return;
  const int fd = std::exchange(fd_, -1);
  auto* const slot = std::exchange(slot_, nullptr);
  // In a child it is closed already, and the number may belong to another file.
  if (generation_ != fork_generation()) return;
  // Without the mutex, because close() may wait for the disk. close() comes first: a child made in
  // between finds the number free, or used for another file, and does not close it.
  ::close(fd);
  slot->fd.store(-1, std::memory_order_release);
}

}  // namespace baton::internal
