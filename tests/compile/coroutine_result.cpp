// The wrong code drops the result of co_acquire() in the statement that acquires the lock. clang
// warns about it. g++ 12 does not warn, because it ignores [[nodiscard]] after co_await.
// refused with: ignoring return value of function declared with 'nodiscard' attribute
#include <baton/baton.h>

#include <coroutine>
#include <exception>

struct Task {
  struct promise_type {
    Task get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

Task take(baton::DistributedMutex mutex) {
#if WRONG == 1
  co_await mutex.co_acquire();
#else
  baton::Lock lock = co_await mutex.co_acquire();
#endif
}

// The wrong code does not await the result, so it acquires nothing.
Task forget(baton::DistributedMutex mutex) {
#if WRONG == 2
  mutex.co_acquire();
  co_return;
#else
  auto waiting = mutex.co_acquire();
  baton::Lock lock = co_await std::move(waiting);
#endif
}
