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

// A registered descriptor. The child of _Fork() reads it as it was at any moment: `fd` is written
// last and cleared first.
struct Slot {
  std::atomic<int> fd{-1};
  std::uint64_t generation = 0;
  dev_t device = 0;
  ino_t inode = 0;
};

namespace {

// In a child all of it is zeros: no generation, and a mutex that is not locked.
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
  bool wiped = false;         // the kernel wipes the page; else the process id must do
  std::atomic<pid_t> pid{0};  // used unless wiped
  std::atomic<std::uint64_t> last{1};
  Chunk first;
};

Guard& guard() {
  static auto* const instance = new Guard;  // NOLINT: lives as long as the process
  return *instance;
}

// Before there are threads: a child never finds its parent in the middle of making it.
[[maybe_unused]] const Guard& made_at_load = guard();

bool still_there(const Slot& slot, int fd) noexcept {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && status.st_dev == slot.device && status.st_ino == slot.inode;
}

// close only: unlocking would free the parent's locks, keeping a copy would make them immortal. By
// now the number may be that of another file: the parent was closing it, or the child closed all it
// inherited and opened others before it asked us anything.
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

// With the mutex held: one thread at a time.
Slot& free_slot(Guard& g) {
  for (Chunk* c = &g.first;; c = c->next.load(std::memory_order_acquire)) {
    for (Slot& slot : c->slots) {
      if (slot.fd.load(std::memory_order_acquire) < 0) return slot;
    }
    if (c->next.load(std::memory_order_acquire) == nullptr) {
      c->next.store(new Chunk, std::memory_order_release);  // NOLINT: never freed, used again
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
  fork_generation();  // in a child: the mutex is fresh, what was inherited is closed
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
  // Closed in the child already; the number may be another file's now.
  if (generation_ != fork_generation()) return;
  // Without the mutex, because closing may wait for the disk. In this order: a child made in
  // between finds the number free, or with another file behind it, and leaves it alone.
  ::close(fd);
  slot->fd.store(-1, std::memory_order_release);
}

}  // namespace baton::internal
