// DistributedMutex: a mutex across processes and machines.
#pragma once

#include <baton/detail/duration.h>
#include <baton/detail/forward.h>
#include <baton/detail/handler.h>
#include <baton/error.h>
#include <baton/lock.h>
#include <baton/options.h>
#include <baton/result.h>

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>

namespace baton {

// A cheap handle to one named lock: copy it freely, two handles of one name are the same lock.
// Thread-safe. May outlive its Client; every acquire then fails with Error(closed). A moved-from
// handle has no lock: name() is empty, valid() is false, unlock() does nothing, token() and
// lost_token() throw Error(not_held), and every lock and acquire fails with Error(closed) (async
// and co_acquire too: they throw it, since there is no client that could call the handler).
//
// Two styles share one queue:
//  - std-style (lock, try_lock, unlock: works with std::unique_lock and std::scoped_lock). The hold
//    belongs to the calling thread and is reentrant: the same thread may lock again, keeps its
//    token, and must unlock as often. A thread that ends without unlocking keeps the lock until the
//    client is closed.
//    Inside a handler or a resumed coroutine lock() and try_lock*() throw Error(would_deadlock),
//    whatever the executor and the client: handlers and coroutines share threads, so a second one
//    would re-enter the hold of the first, and both would be inside. Use acquire_for() or
//    co_acquire() there: their Lock belongs to the caller and not to a thread. (A coroutine that
//    has moved itself to another thread is not seen: the rule is the same.) unlock() is harmless.
//  - handle-style (acquire and relatives). The hold belongs to the returned Lock, which may move to
//    another thread. Every acquire is its own place in the queue: a thread that holds a Lock and
//    asks for another one on the same name waits for itself.
//
// Outcomes shared by all acquires: Error(timeout), Error(cancelled), Error(closed),
// Error(invalid_argument) for a negative timeout, Error(permission_denied), Error(unsupported),
// Error(store_error) at once; an outage is waited out until the timeout. After any of them no entry
// of ours stays in the queue longer than the store needs to hear of it. Waiters are served in the
// order in which the store put them into the queue; a waiter whose session ends, or whose entry is
// evicted, joins again at the end.
class BATON_API DistributedMutex {
 public:
  // Blocks until the lock is ours. Re-entering a hold that was lost throws Error(lock_lost): unlock
  // it first.
  void lock();
  // One attempt. False: somebody else has it, or is in line for it.
  bool try_lock();
  // Waits at most this long. A negative duration is one attempt, as for std::timed_mutex.
  template <class R, class P>
  bool try_lock_for(const std::chrono::duration<R, P>& d) {
    return try_lock_ms(internal::wait_to_ms(d));
  }
  template <class C, class D>
  bool try_lock_until(const std::chrono::time_point<C, D>& t) {
    return try_lock_ms(internal::wait_until_to_ms(t));
  }
  // Never throws, never waits for the network. Without a hold of this thread: one error in the log.
  void unlock() noexcept;

  // Blocks until the lock is ours. Without a timeout it is Error(would_deadlock) when this thread
  // holds it by lock(), and on this client's own callback thread (default executor): handlers that
  // hold locks may be queued behind the caller. On an executor of yours it is allowed: block there
  // only if other threads run the other handlers.
  [[nodiscard]] Lock acquire(AcquireOptions options = {});
  [[nodiscard]] Lock acquire_for(std::chrono::milliseconds timeout);
  // Any other duration, rounded up to milliseconds. One that is too long for milliseconds, like
  // seconds::max(), means no limit.
  template <class R, class P>
  [[nodiscard]] Lock acquire_for(const std::chrono::duration<R, P>& timeout) {
    return acquire_for(internal::timeout_to_ms(timeout));
  }
  // The same, for code without exceptions.
  [[nodiscard]] Result<Lock> acquire_result(AcquireOptions options = {}) noexcept;
  // Empty: not in time. Here an unset timeout means 0. Throws when cancelled or the store fails.
  // Give the result a name: `if (mutex.try_acquire()) {...}` does not compile (see TryLock).
  [[nodiscard]] TryLock try_acquire(AcquireOptions options = {});
  [[nodiscard]] TryLock try_acquire_for(std::chrono::milliseconds timeout);
  template <class R, class P>
  [[nodiscard]] TryLock try_acquire_for(const std::chrono::duration<R, P>& timeout) {
    return try_acquire_for(internal::timeout_to_ms(timeout));
  }

  // Calls handler(Result<Lock>) exactly once, on the client's executor, never inside this call. No
  // thread waits. A handler that throws is logged. The handler may be move-only.
  template <class F>
  void acquire_async(AcquireOptions options, F&& handler) {  // NOLINT(performance-*): moved below
    start_async(std::move(options),
                std::make_unique<internal::Handler<std::decay_t<F>>>(std::forward<F>(handler)));
  }

  // Lock lock = co_await mutex.co_acquire(); the coroutine resumes on the client's executor.
  [[nodiscard]] AcquireAwaitable co_acquire(AcquireOptions options = {});

  // The calling thread's hold, for those who use lock(): Error(not_held) without one.
  std::uint64_t token() const;
  bool valid() const noexcept;  // false without a hold
  std::stop_token lost_token() const;

  const std::string& name() const noexcept;

 private:
  friend class Client;
  explicit DistributedMutex(std::shared_ptr<internal::MutexImpl> impl) noexcept;
  // Throws Error(closed) on a moved-from handle.
  const internal::MutexImpl& impl(const char* what) const;
  bool try_lock_ms(std::chrono::milliseconds timeout);
  void start_async(AcquireOptions options, std::unique_ptr<internal::HandlerBase> handler);

  std::shared_ptr<internal::MutexImpl> impl_;
};

// What co_acquire() returns: await it once.
//
// Destroying a coroutine that waits here cancels the acquire; a lock that was granted meanwhile is
// released. Destroy it on the client's executor: in a handler or in another coroutine, on the
// client's own thread or on one strand of yours. There the coroutine cannot be resumed at the same
// time. On any other thread your program must make sure that the executor does not resume the
// coroutine meanwhile. baton cannot do that: destroy() changes the frame before a destructor of
// baton runs, and after resume() the frame belongs to the thread that runs it. If baton sees
// destroy() and resume() overlap, it calls std::terminate(): the coroutine would go on in freed
// memory. With the default executor, destruction on another thread is a warning in the log.
// To end a wait from another thread, request stop on AcquireOptions::stop: the coroutine resumes
// with Error(cancelled) and ends by itself.
class BATON_API [[nodiscard]] AcquireAwaitable {
 public:
  AcquireAwaitable(AcquireAwaitable&&) noexcept;
  AcquireAwaitable& operator=(AcquireAwaitable&&) = delete;
  ~AcquireAwaitable();

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiter);
  // Throws Error as acquire() does. The Lock must get a name: `co_await mutex.co_acquire();` alone
  // releases it at once. clang warns of that; g++ 12 has no warning for it.
  [[nodiscard]] Lock await_resume();

 private:
  friend class DistributedMutex;
  explicit AcquireAwaitable(std::shared_ptr<internal::CoAttempt> attempt) noexcept;
  std::shared_ptr<internal::CoAttempt> attempt_;
};

}  // namespace baton
