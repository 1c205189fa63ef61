// Mutex, MutexLock, Condition: std::mutex and its companions, in a form that clang can check. A
// member with BATON_GUARDED_BY(mutex_) may only be used while that mutex is locked; `make lint`
// compiles with -Wthread-safety and fails otherwise. Other compilers ignore the marks.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#ifdef __clang__
#define BATON_THREAD_SAFETY(mark) __attribute__((mark))
#else
#define BATON_THREAD_SAFETY(mark)
#endif
// On a member: only used while the mutex is locked.
#define BATON_GUARDED_BY(mutex) BATON_THREAD_SAFETY(guarded_by(mutex))
// On a function or a lambda: the caller has locked the mutex.
#define BATON_REQUIRES(mutex) BATON_THREAD_SAFETY(requires_capability(mutex))
// On a function: the caller has not locked the mutex, because the function locks it.
#define BATON_EXCLUDES(mutex) BATON_THREAD_SAFETY(locks_excluded(mutex))

namespace baton::internal {

class BATON_THREAD_SAFETY(capability("mutex")) Mutex {
 public:
  void lock() BATON_THREAD_SAFETY(acquire_capability()) { mutex_.lock(); }
  void unlock() BATON_THREAD_SAFETY(release_capability()) { mutex_.unlock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Locks a mutex while it lives. unlock() and lock() leave a gap in between.
class BATON_THREAD_SAFETY(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) BATON_THREAD_SAFETY(acquire_capability(mutex))
      : lock_(mutex.mutex_) {}
  ~MutexLock() BATON_THREAD_SAFETY(release_capability()) = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() BATON_THREAD_SAFETY(acquire_capability()) { lock_.lock(); }
  void unlock() BATON_THREAD_SAFETY(release_capability()) { lock_.unlock(); }

 private:
  friend class Condition;
  std::unique_lock<std::mutex> lock_;
};

// The waits may end early, so callers check what they wait for in a loop. A wait is in real time:
// on std::chrono::steady_clock.
class Condition {
 public:
  using Clock = std::chrono::steady_clock;

  void wait(MutexLock& lock) { condition_.wait(lock.lock_); }
  // False: the time is over.
  bool wait_until(MutexLock& lock, Clock::time_point until) {
    return condition_.wait_until(lock.lock_, until) == std::cv_status::no_timeout;
  }
  void notify_all() noexcept { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace baton::internal
