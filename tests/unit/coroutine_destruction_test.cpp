// Coroutines that are destroyed while they wait. Their executor is the client's own callback
// thread.
#include <baton/baton.h>

#include "support/eventually.h"
#include "support/log_capture.h"
#include "support/sanitized.h"

#include <gtest/gtest.h>

#include <atomic>
#include <coroutine>
#include <exception>
#include <optional>
#include <semaphore>
#include <thread>
#include <utility>

namespace baton {
namespace {

using test::eventually;
using test::kLong;
using namespace std::chrono_literals;

// A coroutine whose frame is destroyed by the caller.
class Frame {
 public:
  struct promise_type {
    Frame get_return_object() {
      return Frame(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  explicit Frame(std::coroutine_handle<promise_type> h) : handle_(h) {}
  Frame(Frame&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Frame& operator=(Frame&&) = delete;
  ~Frame() { destroy(); }
  void destroy() {
    if (handle_) std::exchange(handle_, nullptr).destroy();
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

Frame take(DistributedMutex mutex, std::atomic<int>& resumed) {
  Lock lock = co_await mutex.co_acquire();
  ++resumed;
}

// Blocks the callback thread until end() is called.
struct Occupied {
  explicit Occupied(Client& client) {
    client.mutex("occupied").acquire_async({}, [this](const Result<Lock>&) {
      inside.release();
      (void)leave.try_acquire_for(kLong);
      left = true;
    });
    EXPECT_TRUE(inside.try_acquire_for(kLong));
  }
  void end() {
    leave.release();
    EXPECT_TRUE(eventually("the end of the handler", [&] { return left.load(); }));
  }
  std::binary_semaphore inside{0};
  std::binary_semaphore leave{0};
  std::atomic<bool> left{false};
};

// The grant waits in the queue of the callback thread while another thread destroys the frame.
TEST(CoroutineDestruction, OnAnotherThreadWhileItsGrantIsQueuedReleasesTheLock) {
  const test::LogCapture log;
  ClientOptions options;
  options.log = log.sink();
  auto client = Client::connect("memory:destroy1", options);
  auto other = Client::connect("memory:destroy1");
  for (int i = 0; i < test::scaled(200); ++i) {
    Occupied callback_thread(client);
    std::atomic<int> resumed{0};
    Frame frame = take(client.mutex("a"), resumed);
    ASSERT_TRUE(eventually("the grant", [&] { return other.inspect("a").entries.size() == 1; }));
    std::jthread([&] { frame.destroy(); }).join();
    callback_thread.end();
    EXPECT_TRUE(other.mutex("a").acquire_for(10s).valid());
    EXPECT_EQ(resumed, 0);
  }
}

// A frame may be destroyed on the thread that resumes it, because destruction and resumption cannot
// overlap there.
TEST(CoroutineDestruction, OnTheCallbackThreadAtRandomMomentsLeaksNothing) {
  auto client = Client::connect("memory:destroy2");
  auto other = Client::connect("memory:destroy2");
  for (int i = 0; i < test::scaled(500); ++i) {
    std::optional<Lock> lock = other.mutex("a").acquire_for(10s);
    std::atomic<int> resumed{0};
    std::atomic<bool> destroyed{false};
    Frame frame = take(client.mutex("a"), resumed);
    client.mutex("destroyer").acquire_async({}, [&](const Result<Lock>&) {
      frame.destroy();  // the coroutine waits, or has ended
      destroyed = true;
    });
    for (int spin = 0; spin < i % 50 * 20; ++spin)
      std::atomic_signal_fence(std::memory_order_seq_cst);
    lock.reset();
    ASSERT_TRUE(eventually("the destruction", [&] { return destroyed.load(); }));
    EXPECT_LE(resumed, 1);
    EXPECT_TRUE(other.mutex("a").acquire_for(10s).valid());
  }
}

// Another thread cannot know whether a result is already on its way to the coroutine. The client
// logs a warning about this once.
TEST(CoroutineDestruction, OnAnotherThreadWhileItWaitsIsLoggedOnce) {
  const test::LogCapture log;
  ClientOptions options;
  options.log = log.sink();
  auto client = Client::connect("memory:destroy3", options);
  Lock lock = client.mutex("a").acquire();
  std::atomic<int> resumed{0};
  for (int i = 0; i < 3; ++i) Frame frame = take(client.mutex("a"), resumed);
  EXPECT_TRUE(eventually("the warning", [&] {
    return log.count(LogLevel::warning, "destroyed on a thread that is not the client's") == 1;
  }));
  client.close();
  EXPECT_EQ(log.count(LogLevel::warning, "destroyed on a thread that is not the client's"), 1u);
  EXPECT_EQ(resumed, 0);
}

// Stops the resumption between resume() and the first step of the coroutine.
struct Moments {
  std::binary_semaphore resuming{0};
  std::binary_semaphore destroyed{0};
  std::binary_semaphore ended{0};
};

struct Probe {
  AcquireAwaitable inner;
  Moments& moments;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiter) { inner.await_suspend(waiter); }
  Lock await_resume() {
    Moments& m = moments;
    m.resuming.release();
    (void)m.destroyed.try_acquire_for(kLong);
    m.ended.release();
    return inner.await_resume();
  }
};

Frame take_with_probe(DistributedMutex mutex, Moments& moments) {
  Probe probe{mutex.co_acquire(), moments};
  Lock lock = co_await probe;
}

void destroy_during_resumption() {
  auto client = Client::connect("memory:destroy4");
  Moments moments;
  Frame frame = take_with_probe(client.mutex("a"), moments);
  if (!moments.resuming.try_acquire_for(kLong)) return;
  frame.destroy();
  moments.destroyed.release();
  (void)moments.ended.try_acquire_for(kLong);
}

TEST(CoroutineDestructionDeathTest, DuringItsResumptionEndsTheProgram) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(destroy_during_resumption(), "destroyed while another thread was resuming it");
}

// An awaitable that wraps ours and throws before it takes the result.
struct Impatient {
  AcquireAwaitable inner;
  bool await_ready() const noexcept { return inner.await_ready(); }
  void await_suspend(std::coroutine_handle<> waiter) { inner.await_suspend(waiter); }
  Lock await_resume() { throw Error(Errc::cancelled, "the wrapper has given up"); }
};

Frame give_up(DistributedMutex mutex, std::atomic<int>& ended) {
  try {
    Impatient impatient{mutex.co_acquire()};  // named: g++ 12 destroys a braced temporary twice
    const Lock lock = co_await impatient;
  } catch (const Error&) {
    ++ended;
  }
}

TEST(CoroutineDestruction, OfAnAwaitableWhoseResultIsNotTakenReleasesTheLock) {
  auto client = Client::connect("memory:untaken");
  auto mutex = client.mutex("a");
  std::atomic<int> ended{0};
  const Frame frame = give_up(mutex, ended);
  ASSERT_TRUE(eventually("the end", [&] { return ended == 1; }));
  EXPECT_TRUE(mutex.acquire_for(kLong).valid());
  client.close();  // the callback thread has left the frame, so the frame may be destroyed
}

}  // namespace
}  // namespace baton
