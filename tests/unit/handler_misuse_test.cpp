// Calls that would hang or break exclusion inside a handler are refused there.
#include <baton/baton.h>

#include "support/eventually.h"
#include "support/log_capture.h"
#include "support/sanitized.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <coroutine>
#include <exception>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

namespace baton {
namespace {

using test::eventually;
using test::kLong;
using namespace std::chrono_literals;

template <class F>
std::optional<Error> thrown_by(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

template <class F>
Errc code_of(F&& f) {
  const auto error = thrown_by(std::forward<F>(f));
  return error ? error->errc() : Errc{};
}

// Runs `body` in a handler of the client and returns when it has ended.
template <class F>
bool in_handler(Client& client, F body) {
  auto ended = std::make_shared<std::promise<void>>();
  auto future = ended->get_future();
  client.mutex("in-handler").acquire_async({}, [ended, body](const Result<Lock>&) mutable {
    body();
    ended->set_value();
  });
  return future.wait_for(kLong) == std::future_status::ready;
}

// A coroutine that ends by itself, on the thread that runs its last step.
struct Task {
  struct promise_type {
    Task get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

// The first handler holds A and occupies the callback thread. The second handler has been granted B
// and waits for this thread. So acquire("B") in the first handler could never end.
TEST(HandlerMisuse, UntimedAcquireOnTheCallbackThreadIsRefused) {
  std::binary_semaphore go{0};
  std::promise<Error> refused;
  auto future = refused.get_future();
  std::atomic<bool> granted{false};
  auto client = Client::connect("memory:misuse1");
  auto other = Client::connect("memory:misuse1");
  client.mutex("A").acquire_async({}, [&](const Result<Lock>&) {
    (void)go.try_acquire_for(kLong);
    const auto error = thrown_by([&] { (void)client.mutex("B").acquire(); });
    refused.set_value(error ? *error : Error(Errc::store_error, "nothing was thrown"));
  });
  client.mutex("B").acquire_async({}, [&](Result<Lock> lock) { granted = lock && lock->valid(); });
  ASSERT_TRUE(eventually("both grants", [&] {
    return other.inspect("A").entries.size() == 1 && other.inspect("B").entries.size() == 1;
  }));
  go.release();
  ASSERT_EQ(future.wait_for(10s), std::future_status::ready) << "acquire() hangs in the handler";
  const Error error = future.get();
  EXPECT_EQ(error.errc(), Errc::would_deadlock);
  EXPECT_NE(std::string(error.what()).find("\"B\""), std::string::npos) << error.what();
  EXPECT_NE(std::string(error.what()).find("acquire_async"), std::string::npos) << error.what();
  EXPECT_TRUE(eventually("the second handler", [&] { return granted.load(); }));
}

TEST(HandlerMisuse, EveryUntimedStyleIsRefusedOnTheCallbackThread) {
  auto client = Client::connect("memory:misuse2");
  std::vector<Errc> codes;
  Errc timed{};
  bool free_lock = false;
  ASSERT_TRUE(in_handler(client, [&] {
    auto m = client.mutex("in-handler");  // held by this handler
    codes.push_back(code_of([&] { (void)m.acquire(); }));
    codes.push_back(m.acquire_result().error().errc());
    AcquireOptions unbounded;
    unbounded.timeout = std::chrono::milliseconds::max();
    codes.push_back(code_of([&] { (void)m.acquire(unbounded); }));
    codes.push_back(code_of([&] { (void)client.mutex("free").acquire(); }));
    timed = code_of([&] { (void)m.acquire_for(20ms); });
    Lock lock = client.mutex("free").acquire_for(10s);
    free_lock = lock.valid();
  }));
  EXPECT_EQ(codes, std::vector<Errc>(4, Errc::would_deadlock));
  EXPECT_EQ(timed, Errc::timeout) << "a timeout makes it safe";
  EXPECT_TRUE(free_lock);
}

TEST(HandlerMisuse, UntimedAcquireInAResumedCoroutineIsRefused) {
  auto client = Client::connect("memory:misuse3");
  std::promise<Errc> promise;
  const auto body = [&]() -> Task {
    auto m = client.mutex("a");
    Lock lock = co_await m.co_acquire();
    promise.set_value(code_of([&] { (void)client.mutex("b").acquire(); }));
  };
  body();
  auto future = promise.get_future();
  ASSERT_EQ(future.wait_for(kLong), std::future_status::ready);
  EXPECT_EQ(future.get(), Errc::would_deadlock);
}

// The executor of the program may have more threads, so acquire() on it is the program's decision.
TEST(HandlerMisuse, UntimedAcquireOnTheProgramsExecutorIsAllowed) {
  ClientOptions options;
  options.executor = [](std::function<void()> task) { std::thread(std::move(task)).detach(); };
  auto client = Client::connect("memory:misuse4", options);
  bool valid = false;
  ASSERT_TRUE(in_handler(client, [&] { valid = client.mutex("b").acquire().valid(); }));
  EXPECT_TRUE(valid);
}

// Thread-owned holds belong to a thread. Handlers and coroutines share one thread, so the second
// coroutine would re-enter the hold of the first.
TEST(HandlerMisuse, ThreadOwnedLocksAreRefusedInCoroutines) {
  auto client = Client::connect("memory:misuse5");
  std::atomic<int> inside{0};
  std::atomic<int> refused{0};
  const auto body = [&](const char* turn) -> Task {
    auto m = client.mutex(turn);
    Lock lock = co_await m.co_acquire();
    try {
      client.mutex("shared").lock();
      ++inside;
    } catch (const Error& error) {
      refused += error.errc() == Errc::would_deadlock;
    }
  };
  body("one");
  body("two");
  ASSERT_TRUE(eventually("both", [&] { return inside + refused == 2; }));
  EXPECT_EQ(inside, 0) << "two coroutines inside one lock()";
}

std::vector<Errc> lock_in_every_way(DistributedMutex m) {
  return {
      code_of([&] { m.lock(); }),
      code_of([&] { (void)m.try_lock(); }),
      code_of([&] { (void)m.try_lock_for(10ms); }),
      code_of([&] { (void)m.try_lock_until(std::chrono::steady_clock::now() + 10ms); }),
  };
}

TEST(HandlerMisuse, ThreadOwnedLocksAreRefusedInHandlersOfEveryExecutorAndClient) {
  const test::LogCapture log;
  ClientOptions options;
  options.log = log.sink();
  ClientOptions pool = options;
  pool.executor = [](std::function<void()> task) { std::thread(std::move(task)).detach(); };
  auto own_thread = Client::connect("memory:misuse6", options);
  auto executor = Client::connect("memory:misuse6", pool);
  const std::vector<Errc> all(4, Errc::would_deadlock);
  std::string text;
  for (Client* handler_of : {&own_thread, &executor}) {
    for (Client* lock_of : {&own_thread, &executor}) {
      ASSERT_TRUE(in_handler(*handler_of, [&] {
        EXPECT_EQ(lock_in_every_way(lock_of->mutex("x")), all);
        text = thrown_by([&] { lock_of->mutex("x").lock(); })->what();
        lock_of->mutex("x").unlock();  // without a hold: an error in the log
      }));
    }
  }
  EXPECT_NE(text.find("acquire_for()"), std::string::npos) << text;
  EXPECT_TRUE(eventually("the lines of unlock()",
                         [&] { return log.count(LogLevel::error, "unlock \"x\"") == 4; }));
  own_thread.mutex("x").lock();  // outside of handlers it works as usual
  own_thread.mutex("x").unlock();
}

// The mark belongs to the handler, not to the thread of the executor.
TEST(HandlerMisuse, TheExecutorsThreadMayLockAgainAfterTheHandler) {
  std::mutex mutex;
  std::vector<std::function<void()>> tasks;
  ClientOptions options;
  options.executor = [&](std::function<void()> task) {
    const std::lock_guard guard(mutex);
    tasks.push_back(std::move(task));
  };
  auto client = Client::connect("memory:misuse7", options);
  Errc inside{};
  client.mutex("a").acquire_async({}, [&](const Result<Lock>&) {
    inside = code_of([&] { client.mutex("x").lock(); });
    throw std::runtime_error("also when it throws");
  });
  ASSERT_TRUE(eventually("a task", [&] {
    const std::lock_guard guard(mutex);
    return tasks.size() == 1;
  }));
  tasks.front()();
  EXPECT_EQ(inside, Errc::would_deadlock);
  client.mutex("x").lock();
  EXPECT_TRUE(client.mutex("x").valid());
  client.mutex("x").unlock();
  tasks.clear();
}

TEST(HandlerMisuse, AGrantThatWaitsBehindASlowHandlerIsLogged) {
  const test::LogCapture log;
  ClientOptions options;
  options.log = log.sink();
  auto client = Client::connect("memory:misuse8", options);
  std::binary_semaphore leave{0};
  std::atomic<int> ran{0};
  client.mutex("slow").acquire_async({}, [&](const Result<Lock>&) {
    (void)leave.try_acquire_for(kLong);
    ++ran;
  });
  for (int i = 0; i < 20; ++i) {
    client.mutex("waits/" + std::to_string(i)).acquire_async({}, [&](const Result<Lock>&) {
      ++ran;
    });
  }
  EXPECT_TRUE(eventually(
      "the warning", [&] { return log.count(LogLevel::warning, "\"waits/0\"") == 1; }, 10s));
  leave.release();
  EXPECT_TRUE(eventually("all handlers", [&] { return ran == 21; }));
  client.close();
  EXPECT_EQ(log.count(LogLevel::warning, "has not started"), 1u) << "one line for all of them";
}

TEST(HandlerMisuse, UnlockWithoutAHoldCallsTheLogOnAnotherThread) {
  std::promise<std::thread::id> promise;
  auto future = promise.get_future();
  ClientOptions options;
  options.log = [&](LogLevel, std::string_view) { promise.set_value(std::this_thread::get_id()); };
  auto client = Client::connect("memory:misuse9", options);
  client.mutex("a").unlock();
  ASSERT_EQ(future.wait_for(kLong), std::future_status::ready);
  EXPECT_NE(future.get(), std::this_thread::get_id());
}

// The child that a handler forks is a program of its own. Its thread does not run a handler.
TEST(HandlerMisuse, AForkMadeInAHandlerMayLock) {
  if (test::sanitized()) GTEST_SKIP() << "a sanitizer's own locks do not survive a fork";
  auto client = Client::connect("memory:fork-in-handler");
  std::atomic<pid_t> child{0};
  ASSERT_TRUE(in_handler(client, [&child] {
    child = ::fork();
    if (child != 0) return;
    ::alarm(30);  // bounds the wait below
    bool locked = false;
    try {
      auto own = Client::connect("memory:of-the-child");
      auto mutex = own.mutex("a");
      locked = mutex.try_lock();
    } catch (const Error&) {
      locked = false;
    }
    ::_exit(locked ? 0 : 1);
  }));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace baton
