// co_acquire(): co_await returns a Lock or throws, and the coroutine resumes on the executor.
#include "conformance/fixture.h"

#include <atomic>
#include <coroutine>
#include <exception>
#include <functional>
#include <mutex>
#include <numeric>
#include <thread>

namespace baton::conformance {
namespace {

// A coroutine that starts at once and destroys itself when it ends. While it is suspended, a test
// can destroy it through the handle.
struct Task {
  struct promise_type {
    Task get_return_object() {
      return Task{std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;
};

Task take(DistributedMutex mutex, AcquireOptions options, std::promise<Lock>& promise) {
  try {
    Lock lock = co_await mutex.co_acquire(std::move(options));
    promise.set_value(std::move(lock));
  } catch (...) {
    promise.set_exception(std::current_exception());
  }
}

TEST_P(Coroutines, AwaitAFreeLock) {
  auto client = open();
  std::promise<Lock> promise;
  auto future = promise.get_future();
  take(client.mutex("a"), patient(), promise);
  ASSERT_TRUE(ready(future));
  auto lock = future.get();
  EXPECT_TRUE(lock.valid());
  EXPECT_NE(lock.token(), 0u);
}

TEST_P(Coroutines, AwaitATakenLock) {
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  std::promise<Lock> promise;
  auto future = promise.get_future();
  take(client.mutex("a"), patient(), promise);
  ASSERT_TRUE(in_line("a", 2));
  EXPECT_EQ(future.wait_for(10ms), std::future_status::timeout);
  lock.release();
  ASSERT_TRUE(ready(future));
  EXPECT_TRUE(future.get().valid());
}

TEST_P(Coroutines, ErrorsAreThrownAtTheAwait) {
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  std::stop_source stop;
  std::promise<Lock> timeout;
  std::promise<Lock> cancelled;
  std::promise<Lock> invalid;
  take(client.mutex("a"), within(20ms), timeout);
  take(client.mutex("a"), patient(stop.get_token()), cancelled);
  take(client.mutex("a"), within(-1ms), invalid);
  stop.request_stop();
  EXPECT_EQ(error_of([&] { (void)timeout.get_future().get(); }), Errc::timeout);
  EXPECT_EQ(error_of([&] { (void)cancelled.get_future().get(); }), Errc::cancelled);
  EXPECT_EQ(error_of([&] { (void)invalid.get_future().get(); }), Errc::invalid_argument);
  EXPECT_TRUE(in_line("a", 1));
}

TEST_P(Coroutines, ClosedClientIsThrownAtTheAwait) {
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  std::promise<Lock> waiting;
  take(client.mutex("a"), {}, waiting);
  ASSERT_TRUE(in_line("a", 2));
  client.close();
  EXPECT_EQ(error_of([&] { (void)waiting.get_future().get(); }), Errc::closed);
}

TEST_P(Coroutines, DestroyedWhileWaitingLeavesNoEntry) {
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  std::promise<Lock> promise;
  const Task task = take(client.mutex("a"), {}, promise);
  ASSERT_TRUE(in_line("a", 2));
  task.handle.destroy();
  EXPECT_TRUE(in_line("a", 1));
  lock.release();
  EXPECT_TRUE(client.mutex("a").acquire(patient()).valid());
}

TEST_P(Coroutines, AwaitableThatIsNeverAwaitedDoesNothing) {
  auto client = open();
  { auto unused = client.mutex("a").co_acquire(patient()); }
  {
    auto unused = client.mutex("a").co_acquire(patient());
    auto moved = std::move(unused);
  }
  EXPECT_EQ(entries("a"), 0u);
}

TEST_P(Coroutines, ResumeOnTheExecutor) {
  std::mutex mutex;
  std::vector<std::function<void()>> tasks;
  auto o = options();
  o.executor = [&](std::function<void()> task) {
    const std::lock_guard guard(mutex);
    tasks.push_back(std::move(task));
  };
  auto client = open(std::move(o));
  std::thread::id where;
  const auto body = [&]() -> Task {
    auto m = client.mutex("a");
    Lock lock = co_await m.co_acquire(patient());
    where = std::this_thread::get_id();
  };
  body();
  ASSERT_TRUE(soon("a task for the executor", [&] {
    const std::lock_guard guard(mutex);
    return tasks.size() == 1;
  }));
  EXPECT_EQ(where, std::thread::id());
  tasks.front()();
  EXPECT_EQ(where, std::this_thread::get_id());
}

TEST_P(Coroutines, TakeTurnsInOrder) {
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  const int waiters = rig().rounds(scaled(100));
  std::vector<int> order;
  std::atomic<int> done{0};
  const auto body = [&](int i) -> Task {
    auto m = client.mutex("a");
    Lock mine = co_await m.co_acquire();
    order.push_back(i);
    ++done;
  };
  for (int i = 0; i < waiters; ++i) body(i);
  ASSERT_TRUE(in_line("a", static_cast<std::size_t>(waiters) + 1));
  lock.release();
  ASSERT_TRUE(soon("all served", [&] { return done == waiters; }));
  std::vector<int> wanted(static_cast<std::size_t>(waiters));
  std::iota(wanted.begin(), wanted.end(), 0);
  EXPECT_EQ(order, wanted);
  EXPECT_TRUE(in_line("a", 0));
}

}  // namespace
}  // namespace baton::conformance
