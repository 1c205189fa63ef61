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

// A handle to one named lock, made by Client::mutex(). Cheap to copy. All handles of one name in
// one store, in any process, are the same lock.
//
//   auto mutex = client.mutex("orders/7");
//   baton::Lock lock = mutex.acquire_for(std::chrono::seconds(30));
//   write_order(7, lock.token());
//
// Two styles share one queue:
//
//  - acquire() and its relatives. The returned Lock owns the hold and may move to another thread.
//    Every acquire is its own entry in the queue: a thread that holds a Lock and acquires the same
//    name again waits for itself.
//  - lock() and its relatives, for std::unique_lock and std::scoped_lock. The calling thread owns
//    the hold. Reentrant, counted per client, name and thread: the thread may lock again, keeps its
//    token, and must unlock as often. A thread that ends without unlock() leaves the lock held
//    until the client is closed.
//
// Prefer acquire(). A Lock carries token(), valid() and lost_token(), so that the protected code
// can notice a loss; a std::unique_lock does not look at them. A Lock can move between threads,
// works in handlers and coroutines, and has release(), which waits for the store's confirmation.
//
// Waiting: clients are granted the lock in the order in which the store put their entries into the
// queue. An outage of the store is waited out, until the timeout. A waiter whose session ends, or
// whose entry is evicted, joins again at the end of the queue. A call that ends without the lock
// leaves no entry behind for longer than the store needs to hear of it. A call with a timeout > 0
// returns within it + 50 ms, as long as the process is scheduled.
//
// Threads: all calls are thread-safe. Moving a handle while another thread uses it is not. A handle
// may outlive its Client: every call to get the lock then fails with Error(closed). In a fork of
// the process it fails with Error(forked).
//
// A moved-from handle names no lock: name() is empty, valid() is false, unlock() does nothing,
// token() and lost_token() throw Error(not_held), every call to get the lock fails with
// Error(closed). acquire_async() and co_acquire() throw it too.
class BATON_API DistributedMutex {
 public:
  // ---- the Lock owns the hold

  // Blocks until the lock is granted, and returns the Lock that owns it. See AcquireOptions for
  // timeout and stop.
  //
  //   baton::Lock lock = mutex.acquire({.timeout = std::chrono::seconds(30), .stop = stop});
  //
  // Throws, and the relatives of acquire() report, one of the OUTCOMES OF AN ACQUIRE:
  //
  // | Errc              | when                                                                 |
  // |-------------------|----------------------------------------------------------------------|
  // | timeout           | not granted within options.timeout. With timeout 0: another entry    |
  // |                   | holds the lock or waits for it                                       |
  // | cancelled         | options.stop was requested, before the call or while it waited       |
  // | closed            | the client is closed or was closed during the wait; moved-from       |
  // | forked            | this process is a fork of the one that opened the client             |
  // | would_deadlock    | no timeout, and this thread holds the lock by lock(); or no timeout  |
  // |                   | (unset or milliseconds::max()) on the client's callback thread       |
  // | connection_failed | with timeout 0 only: no answer within the client's connect_timeout   |
  // | invalid_argument  | options.timeout is negative; or the client had to open a new session |
  // |                   | and the store now records another token base than the URL has        |
  // | permission_denied | the store refuses the client's credentials                           |
  // | unsupported       | the server or the file system lacks a feature that baton needs       |
  // | store_error       | the store's answer or its data makes no sense                        |
  //
  // The last four are permanent: they end the call as soon as they are known, before any timeout.
  // Unreachable servers are not an error as long as the timeout has not passed.
  //
  // The client's callback thread runs handlers and resumes coroutines unless
  // ClientOptions::executor is set. An acquire without a timeout is refused there because handlers
  // that hold locks may be queued behind the caller. On an executor of the program it is allowed:
  // block there only if other threads run the other handlers.
  [[nodiscard]] Lock acquire(AcquireOptions options = {});

  // acquire() with a timeout and no stop token. Outcomes: see acquire().
  [[nodiscard]] Lock acquire_for(std::chrono::milliseconds timeout);
  // The same with any other duration, rounded up to milliseconds. A duration that does not fit into
  // milliseconds, like seconds::max(), means no limit.
  template <class R, class P>
  [[nodiscard]] Lock acquire_for(const std::chrono::duration<R, P>& timeout) {
    return acquire_for(internal::timeout_to_ms(timeout));
  }

  // acquire() for code without exceptions: returns the Lock or the Error. Outcomes: see acquire();
  // any other exception, like std::bad_alloc, becomes store_error.
  //
  //   auto result = mutex.acquire_result({.timeout = std::chrono::seconds(30)});
  //   if (!result) return result.error().errc();
  //   baton::Lock lock = *std::move(result);
  [[nodiscard]] Result<Lock> acquire_result(AcquireOptions options = {}) noexcept;

  // acquire() that returns empty instead of Error(timeout). An unset timeout means 0 here: one
  // attempt, bounded by the client's connect_timeout. Throws the other outcomes: see acquire(). So
  // an attempt that cannot reach the store throws Error(connection_failed); it does not return
  // empty.
  //
  //   if (baton::TryLock lock = mutex.try_acquire()) {
  //     write_order(7, lock->token());
  //   }
  [[nodiscard]] TryLock try_acquire(AcquireOptions options = {});
  // try_acquire() with a timeout and no stop token.
  [[nodiscard]] TryLock try_acquire_for(std::chrono::milliseconds timeout);
  // The same with any other duration, as for acquire_for().
  template <class R, class P>
  [[nodiscard]] TryLock try_acquire_for(const std::chrono::duration<R, P>& timeout) {
    return try_acquire_for(internal::timeout_to_ms(timeout));
  }

  // Starts an acquire and returns; handler(Result<Lock>) is called with the outcome. No thread
  // waits. Outcomes: see acquire(), without would_deadlock. All of them go to the handler; this
  // call throws Error(closed) on a moved-from handle and nothing else of baton's.
  //
  //   mutex.acquire_async({}, [](baton::Result<baton::Lock> result) {
  //     if (result) write_order(7, result->token());
  //   });
  //
  // The handler is called exactly once, on the client's executor and never inside this call. There
  // are two exceptions. In a fork of the process no thread is left: the handler is called inside
  // this call with Error(forked). If the program's executor drops its task, the handler is never
  // called, and a granted lock is released. After close() see Client::close().
  // baton owns the handler, which may be move-only, and the Lock until the handler has it. A
  // handler that throws is logged, and a Lock that it did not keep is released.
  template <class F>
  void acquire_async(AcquireOptions options, F&& handler) {  // NOLINT(performance-*): moved below
    start_async(std::move(options),
                std::make_unique<internal::Handler<std::decay_t<F>>>(std::forward<F>(handler)));
  }

  // Returns an awaitable that acquires the lock when a coroutine awaits it. The acquire and its
  // timeout begin at co_await; an awaitable that is never awaited does nothing. The coroutine
  // resumes on the client's executor, with the Lock or with an exception. Outcomes: see acquire(),
  // without would_deadlock. co_acquire() itself throws Error(closed) on a moved-from handle.
  //
  //   baton::Lock lock = co_await mutex.co_acquire({.timeout = std::chrono::seconds(30)});
  [[nodiscard]] AcquireAwaitable co_acquire(AcquireOptions options = {});

  // ---- the calling thread owns the hold

  // Blocks until the calling thread holds the lock. If it does already, counts one more.
  //
  //   std::scoped_lock guard(mutex);
  //   write_order(7, mutex.token());
  //
  // Throws
  //  - Error(lock_lost): the thread has a hold that was lost. Call unlock() as often as lock(),
  //    then try again;
  //  - Error(would_deadlock): called inside a handler, a resumed coroutine or the metrics function
  //    of any client. Those share threads: a second one would re-enter the hold of the first, and
  //    both would be inside. Use acquire_for() or co_acquire(). A coroutine that has moved itself
  //    to another thread is not noticed; the same rule holds there;
  //  - Error(closed), Error(forked), Error(invalid_argument), Error(permission_denied),
  //    Error(unsupported), Error(store_error): see acquire().
  void lock();

  // Makes one attempt, bounded by the client's connect_timeout. False: another entry holds the lock
  // or waits for it. Throws as lock() does, and Error(connection_failed) if there was no answer
  // within connect_timeout.
  bool try_lock();

  // lock() with a time limit. False: not granted in time. Throws as lock() does. 0 and negative
  // durations are one attempt, like try_lock(). Durations that do not fit into milliseconds mean no
  // limit.
  template <class R, class P>
  bool try_lock_for(const std::chrono::duration<R, P>& d) {
    return try_lock_ms(internal::wait_to_ms(d));
  }
  // The same until a time point of any clock. The clock is read once: setting it later has no
  // effect. A time point that has passed is one attempt, like try_lock().
  template <class C, class D>
  bool try_lock_until(const std::chrono::time_point<C, D>& t) {
    return try_lock_ms(internal::wait_until_to_ms(t));
  }

  // Undoes one lock() of the calling thread; the last one releases. Never throws, and never waits
  // for the network: the entry is withdrawn in the background. A hold that was lost must be
  // unlocked too. Without a hold of this thread: one error in the log, no effect. In a fork of the
  // process: no effect.
  void unlock() noexcept;

  // These describe the hold that the calling thread has by lock(); for a Lock, ask the Lock.
  // token() and lost_token() throw Error(not_held) without such a hold and Error(forked) in a fork
  // of the process. A hold that was lost keeps its token. See Lock for their meaning.
  std::uint64_t token() const;
  bool valid() const noexcept;  // false: lost, no hold, or a fork
  std::stop_token lost_token() const;

  // Returns the name of the lock; empty if moved from. Good as long as this handle.
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

// What co_acquire() returns. Await it once, and give the Lock a name:
//
//   baton::Lock lock = co_await mutex.co_acquire();  // held until the end of the scope
//   co_await mutex.co_acquire();                     // wrong: released at once (clang warns)
//
// Ending a wait: request stop on AcquireOptions::stop, on any thread. The coroutine resumes with
// Error(cancelled) and ends by itself.
//
// Destroying a coroutine that waits here cancels the acquire; a lock that was granted meanwhile is
// released. Destroy it on the client's executor: in a handler or another coroutine, on the client's
// callback thread or on one strand of the program's executor. There the coroutine cannot be resumed
// at the same time. On any other thread the program must make sure of that itself; baton cannot,
// because destroy() changes the frame before a destructor of baton runs, and after resume() the
// frame belongs to the thread that runs it. If baton sees destroy() and resume() overlap, it calls
// std::terminate(): the coroutine would continue in freed memory. With the default executor,
// destruction on another thread is a warning in the log, once per client.
//
// In a fork of the process no thread is left: the coroutine resumes inside co_await, with
// Error(forked).
class BATON_API [[nodiscard]] AcquireAwaitable {
 public:
  AcquireAwaitable(AcquireAwaitable&&) noexcept;  // the source must not be awaited afterwards
  AcquireAwaitable& operator=(AcquireAwaitable&&) = delete;
  ~AcquireAwaitable();

  // Called by co_await. await_resume() returns the Lock or throws Error: see co_acquire().
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiter);
  [[nodiscard]] Lock await_resume();

 private:
  friend class DistributedMutex;
  explicit AcquireAwaitable(std::shared_ptr<internal::CoAttempt> attempt) noexcept;
  std::shared_ptr<internal::CoAttempt> attempt_;
};

}  // namespace baton
