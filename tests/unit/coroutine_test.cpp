// Coroutines that are destroyed at every moment around the grant.
#include <baton/baton.h>

#include "support/eventually.h"
#include "support/sanitized.h"

#include <gtest/gtest.h>

#include <atomic>
#include <coroutine>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace baton {
namespace {

using test::eventually;
using namespace std::chrono_literals;

// A coroutine that is destroyed by its owner, even after it has ended.
class Owned {
 public:
  struct promise_type {
    Owned get_return_object() {
      return Owned(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  explicit Owned(std::coroutine_handle<promise_type> h) : handle_(h) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&&) = delete;
  ~Owned() {
    if (handle_) handle_.destroy();
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

// A coroutine that ends by itself on the thread where it runs. No other code touches its frame.
struct Detached {
  struct promise_type {
    Detached get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

// Runs resumptions on the test's own thread, when the test calls run_all().
class ManualExecutor {
 public:
  std::function<void(std::function<void()>)> function() {
    return [this](std::function<void()> task) {
      const std::lock_guard guard(mutex_);
      tasks_.push_back(std::move(task));
    };
  }
  std::size_t size() const {
    const std::lock_guard guard(mutex_);
    return tasks_.size();
  }
  void run_all() {
    std::vector<std::function<void()>> now;
    {
      const std::lock_guard guard(mutex_);
      now.swap(tasks_);
    }
    for (auto& task : now) task();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;
};

Owned take(DistributedMutex mutex, int& stage) {
  stage = 1;
  Lock lock = co_await mutex.co_acquire();
  stage = 2;
}

TEST(Coroutine, RunsToItsEnd) {
  ManualExecutor executor;
  ClientOptions options;
  options.executor = executor.function();
  auto client = Client::connect("memory:co1", options);
  int stage = 0;
  const Owned task = take(client.mutex("a"), stage);
  EXPECT_EQ(stage, 1);
  ASSERT_TRUE(eventually("a resumption", [&] { return executor.size() == 1; }));
  executor.run_all();
  EXPECT_EQ(stage, 2);
  EXPECT_TRUE(client.mutex("a").acquire_for(10s).valid()) << "its Lock went with its frame";
}

// The coroutine is destroyed while its grant waits in the executor. It must not be resumed, and its
// lock must be released.
TEST(Coroutine, DestroyedBetweenGrantAndResumption) {
  ManualExecutor executor;
  ClientOptions options;
  options.executor = executor.function();
  auto client = Client::connect("memory:co2", options);
  int stage = 0;
  {
    const Owned task = take(client.mutex("a"), stage);
    ASSERT_TRUE(eventually("a resumption", [&] { return executor.size() == 1; }));
  }
  executor.run_all();
  EXPECT_EQ(stage, 1);
  EXPECT_TRUE(client.mutex("a").acquire_for(10s).valid());
}

TEST(Coroutine, DestroyedAtRandomMomentsLeaksNothing) {
  ManualExecutor executor;
  ClientOptions options;
  options.executor = executor.function();
  auto client = Client::connect("memory:co3", options);
  auto other = Client::connect("memory:co3");
  for (int i = 0; i < test::scaled(500); ++i) {
    // A grant may still wait in the executor. Its lock is released when the task runs.
    std::optional<Lock> lock;
    ASSERT_TRUE(eventually("a free lock", [&] {
      executor.run_all();
      return (lock = other.mutex("a").try_acquire()).has_value();
    }));
    int stage = 0;
    {
      const Owned task = take(client.mutex("a"), stage);
      lock.reset();
      for (int spin = 0; spin < i % 50 * 20; ++spin)
        std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    executor.run_all();
    EXPECT_EQ(stage, 1);
  }
  EXPECT_TRUE(eventually("a free lock", [&] {
    executor.run_all();
    return other.mutex("a").try_acquire().has_value();
  }));
}

TEST(Coroutine, AwaitedOnAClosedClientThrowsClosed) {
  auto client = Client::connect("memory:co4");
  auto mutex = client.mutex("a");
  client.close();
  std::atomic<int> code{0};
  const auto body = [&]() -> Detached {
    try {
      Lock lock = co_await mutex.co_acquire();
    } catch (const Error& error) {
      code = static_cast<int>(error.errc());
    }
  };
  body();
  EXPECT_TRUE(eventually("the error", [&] { return code != 0; }));
  EXPECT_EQ(code, static_cast<int>(Errc::closed));
}

}  // namespace
}  // namespace baton
