// Which handlers still run after close() has returned, and which do not.
#include <baton/baton.h>

#include "support/boot_clock.h"
#include "support/eventually.h"
#include "support/log_capture.h"

#include <gtest/gtest.h>
#include <time.h>

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>

namespace baton {
namespace {

using test::eventually;
using test::kLong;
using namespace std::chrono_literals;

// The first handler blocks for longer than close() waits. The second one is queued behind it.
TEST(AfterClose, AHandlerQueuedBehindABlockedOneRunsOnceWithoutAValidLock) {
  const test::LogCapture log;
  std::binary_semaphore leave{0};
  std::binary_semaphore inside{0};
  std::atomic<int> granted_calls{0};
  std::atomic<int> waiting_calls{0};
  std::atomic<int> metrics_calls{0};
  std::atomic<bool> valid{true};
  std::atomic<bool> closed{false};
  {
    ClientOptions options;
    options.log = log.sink();
    options.metrics = [&](const MetricEvent&) { ++metrics_calls; };
    auto client = Client::connect("memory:after1", options);
    auto other = Client::connect("memory:after1");
    client.mutex("blocks").acquire_async({}, [&](const Result<Lock>&) {
      inside.release();
      (void)leave.try_acquire_for(kLong);
    });
    ASSERT_TRUE(inside.try_acquire_for(kLong));
    client.mutex("granted").acquire_async({}, [&](Result<Lock> lock) {
      valid = lock && lock->valid();
      ++granted_calls;
    });
    Lock held = other.mutex("taken").acquire();
    client.mutex("taken").acquire_async({}, [&](Result<Lock> lock) {
      closed = !lock && lock.error().errc() == Errc::closed;
      ++waiting_calls;
    });
    ASSERT_TRUE(eventually("the grant", [&] {
      return other.inspect("granted").entries.size() == 1 &&
             other.inspect("taken").entries.size() == 2;
    }));
    const test::Stopwatch watch;
    client.close();
    EXPECT_LE(watch.elapsed(), 5500ms);
    EXPECT_EQ(granted_calls + waiting_calls, 0);
    EXPECT_TRUE(eventually(
        "the warning", [&] { return log.count(LogLevel::warning, "handlers run after it") == 1; }));
    EXPECT_TRUE(eventually("free locks", [&] {
      return other.inspect("granted").entries.empty() && other.inspect("taken").entries.size() == 1;
    })) << "what was granted and not yet handed over is free at once";
  }
  const int metrics_before = metrics_calls;
  leave.release();
  EXPECT_TRUE(
      eventually("the queued handlers", [&] { return granted_calls == 1 && waiting_calls == 1; }));
  EXPECT_FALSE(valid) << "a lock is never valid after close()";
  EXPECT_TRUE(closed);
  EXPECT_EQ(metrics_calls, metrics_before) << "metrics end with close()";
}

TEST(AfterClose, NothingRunsWhenAllHandlersReturnInTime) {
  std::atomic<int> calls{0};
  constexpr int kCalls = 500;
  {
    auto client = Client::connect("memory:after2");
    Lock held = client.mutex("taken").acquire();
    for (int i = 0; i < kCalls; ++i) {
      client.mutex("taken").acquire_async({}, [&](const Result<Lock>&) { ++calls; });
    }
    client.close();
    EXPECT_EQ(calls, kCalls) << "close() waits for them";
  }
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

// A handler that acquires again after every error. After close() every answer is `closed`.
struct Retry : std::enable_shared_from_this<Retry> {
  explicit Retry(DistributedMutex m) : mutex(std::move(m)) {}
  void ask() {
    mutex.acquire_async({}, [self = shared_from_this()](const Result<Lock>& lock) {
      ++self->calls;
      if (!lock && !self->stop) self->ask();
    });
  }
  DistributedMutex mutex;
  std::atomic<int> calls{0};
  std::atomic<bool> stop{false};
};

void retry_after_close(const ClientOptions& options) {
  auto client = Client::connect("memory:after3", options);
  Lock held = client.mutex("a").acquire();
  auto retry = std::make_shared<Retry>(client.mutex("a"));
  retry->ask();
  const test::Stopwatch watch;
  client.close();
  EXPECT_LE(watch.elapsed(), 3s) << "close() must not wait for a handler that never gives up";
  ASSERT_TRUE(eventually("the first answers", [&] { return retry->calls >= 100; }));
  const double before = cpu_seconds();
  const int calls = retry->calls;
  EXPECT_TRUE(eventually("three more answers", [&] { return retry->calls >= calls + 3; }));
  EXPECT_LE(retry->calls, calls + 20) << "about one a second";
  EXPECT_LE(cpu_seconds() - before, 1.5) << "three seconds without a busy loop";
  // Calls without a retry are also answered, each once.
  std::atomic<int> answered{0};
  for (int i = 0; i < 200; ++i) {
    retry->mutex.acquire_async({}, [&](const Result<Lock>& lock) { answered += !lock; });
  }
  EXPECT_TRUE(eventually("an answer to every call", [&] { return answered == 200; }));
  retry->stop = true;
  EXPECT_TRUE(eventually("the end", [&] { return retry.use_count() == 1; }));
}

TEST(AfterClose, AHandlerThatRetriesOnEveryErrorDoesNotSpin) { retry_after_close({}); }

TEST(AfterClose, AHandlerThatRetriesOnAnExecutorDoesNotSpin) {
  ClientOptions options;
  options.executor = [](std::function<void()> task) { std::thread(std::move(task)).detach(); };
  retry_after_close(options);
}

}  // namespace
}  // namespace baton
