// Asynchronous acquires: the handler is called once, on the executor, and never inside the call.
// Waiters and locks need no threads. A handler that blocks delays no loss of another lock.
#include "conformance/fixture.h"
#include "support/child.h"

#include <atomic>
#include <deque>
#include <mutex>
#include <numeric>
#include <semaphore>
#include <thread>

namespace baton::conformance {
namespace {

TEST_P(Handlers, RunOnceAndNeverInsideTheCall) {
  auto client = open();
  std::atomic<int> calls{0};
  std::thread::id where;
  std::promise<Lock> promise;
  client.mutex("a").acquire_async(patient(), [&](Result<Lock> r) {
    ++calls;
    where = std::this_thread::get_id();
    promise.set_value(std::move(r).value());
  });
  auto future = promise.get_future();
  ASSERT_TRUE(ready(future));
  EXPECT_NE(where, std::this_thread::get_id());
  auto lock = future.get();
  EXPECT_TRUE(lock.valid());
  lock.release();
  client.close();
  EXPECT_EQ(calls, 1);
}

TEST_P(Handlers, MayBeMoveOnly) {
  auto client = open();
  std::promise<Lock> promise;
  auto future = promise.get_future();
  client.mutex("a").acquire_async(
      patient(), [p = std::move(promise), u = std::make_unique<int>(1)](Result<Lock> r) mutable {
        p.set_value(std::move(r).value());
      });
  ASSERT_TRUE(ready(future));
  EXPECT_TRUE(future.get().valid());
}

TEST_P(Handlers, MayBeCopiedFromAnLvalue) {
  auto client = open();
  auto count = std::make_shared<std::atomic<int>>(0);
  const auto handler = [count](Result<Lock> r) { *count += r.has_value(); };
  client.mutex("a").acquire_async(patient(), handler);
  client.mutex("a").acquire_async(patient(), handler);
  EXPECT_TRUE(soon("both", [&] { return *count == 2; }));
}

TEST_P(Handlers, DroppedResultReleasesTheLock) {
  auto client = open();
  std::promise<void> promise;
  client.mutex("a").acquire_async(patient(), [&](Result<Lock>) { promise.set_value(); });
  auto future = promise.get_future();
  ASSERT_TRUE(ready(future));
  EXPECT_TRUE(in_line("a", 0));
}

TEST_P(Handlers, ThatThrowAreLoggedAndSwallowed) {
  auto client = open();
  client.mutex("a").acquire_async(
      patient(), [](Result<Lock>) { throw std::runtime_error("the handler's own fault 4711"); });
  client.mutex("b").acquire_async(patient(), [](Result<Lock>) { throw 42; });
  EXPECT_TRUE(soon("the log line", [&] {
    return log_.count(LogLevel::error, "4711") + log_.count(LogLevel::warning, "4711") == 1;
  }));
  std::promise<void> promise;
  client.mutex("a").acquire_async(patient(), [&](Result<Lock>) { promise.set_value(); });
  auto future = promise.get_future();
  EXPECT_TRUE(ready(future));
  EXPECT_TRUE(in_line("b", 0));
}

TEST_P(Handlers, ThatBlockDelayNobodysLossAndNobodysWait) {
  auto client = open();
  auto other = open();
  auto lock = client.mutex("a").acquire(patient());
  std::binary_semaphore entered{0};
  std::binary_semaphore leave{0};
  std::atomic<bool> left{false};
  client.mutex("b").acquire_async(patient(), [&](Result<Lock>) {
    entered.release();
    (void)leave.try_acquire_for(kLong);
    left = true;
  });
  ASSERT_TRUE(entered.try_acquire_for(kLong));
  const Stopwatch watch;
  ASSERT_TRUE(evict("a", lock.token(), other));
  EXPECT_TRUE(soon("the loss", [&] { return lock.lost_token().stop_requested(); }));
  EXPECT_LE(watch.elapsed(), 1s + kSlack);
  EXPECT_TRUE(client.mutex("c").acquire(patient()).valid());
  EXPECT_FALSE(left);
  leave.release();
  EXPECT_TRUE(soon("the handler's end", [&] { return left.load(); }));
}

TEST_P(Handlers, RunOnTheExecutorAndNowhereElse) {
  std::mutex mutex;
  std::deque<std::function<void()>> tasks;
  auto o = options();
  o.executor = [&](std::function<void()> task) {
    const std::lock_guard guard(mutex);
    tasks.push_back(std::move(task));
  };
  auto client = open(std::move(o));
  std::thread::id where;
  std::optional<Lock> lock;
  client.mutex("a").acquire_async(patient(), [&](Result<Lock> r) {
    where = std::this_thread::get_id();
    lock = std::move(r).value();
  });
  ASSERT_TRUE(soon("a task for the executor", [&] {
    const std::lock_guard guard(mutex);
    return tasks.size() == 1;
  }));
  EXPECT_FALSE(lock) << "ran without the executor";
  tasks.front()();
  EXPECT_EQ(where, std::this_thread::get_id());
  ASSERT_TRUE(lock);
  EXPECT_TRUE(lock->valid());
  tasks.clear();
}

TEST_P(Handlers, MayAcquireAgain) {
  auto client = open();
  const int rounds = rig().rounds(scaled(200));
  std::atomic<int> done{0};
  std::function<void()> step = [&] {
    client.mutex("a").acquire_async(patient(), [&](Result<Lock> r) {
      ASSERT_TRUE(r);
      if (++done < rounds) step();
    });
  };
  step();
  EXPECT_TRUE(soon("all rounds", [&] { return done == rounds; }));
}

TEST_P(Handlers, AreCalledWithCancelled) {
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  std::stop_source stop;
  std::promise<Errc> promise;
  client.mutex("a").acquire_async({{}, stop.get_token()}, [&](Result<Lock> r) {
    promise.set_value(r ? Errc::store_error : r.error().errc());
  });
  ASSERT_TRUE(in_line("a", 2));
  stop.request_stop();
  auto future = promise.get_future();
  ASSERT_TRUE(ready(future));
  EXPECT_EQ(future.get(), Errc::cancelled);
  EXPECT_TRUE(in_line("a", 1));
}

// Finds a design with one thread for each waiter (in etcd-cpp-apiv3, 128 waiters exhaust the thread
// pool).
TEST_P(Handlers, AThousandWaitersCostNoThreadsAndAreServedInOrder) {
  const int waiters = rig().rounds(sanitized() ? 200 : 1000);
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  (void)entries("a");
  const int threads = test::threads_of_this_process();
  std::mutex order_mutex;
  std::vector<int> order;
  for (int i = 0; i < waiters; ++i) {
    client.mutex("a").acquire_async({}, [&, i](Result<Lock> r) {
      const std::lock_guard guard(order_mutex);
      order.push_back(r ? i : -1);
    });
  }
  ASSERT_TRUE(in_line("a", static_cast<std::size_t>(waiters) + 1));
  EXPECT_LE(test::threads_of_this_process(), threads + 4);
  lock.release();
  ASSERT_TRUE(soon("all served", [&] {
    const std::lock_guard guard(order_mutex);
    return static_cast<int>(order.size()) == waiters;
  }));
  std::vector<int> wanted(static_cast<std::size_t>(waiters));
  std::iota(wanted.begin(), wanted.end(), 0);
  EXPECT_EQ(order, wanted);
}

TEST_P(Handlers, AThousandLocksHeldCostNoThreads) {
  const int locks = rig().rounds(sanitized() ? 100 : 1000);
  auto client = open();
  auto first = client.mutex("first").acquire(patient());
  (void)entries("first");
  const int threads = test::threads_of_this_process();
  std::vector<Lock> held;
  for (int i = 0; i < locks; ++i) {
    held.push_back(client.mutex("n/" + std::to_string(i)).acquire(patient()));
  }
  EXPECT_LE(test::threads_of_this_process(), threads + 4);
  for (const auto& lock : held) EXPECT_TRUE(lock.valid());
  client.close();
  for (const auto& lock : held) EXPECT_FALSE(lock.valid());
}

TEST_P(Handlers, MetricsTellWhatHappened) {
  std::atomic<int> acquired{0};
  std::atomic<int> released{0};
  std::atomic<int> lost{0};
  std::atomic<int> timed_out{0};
  std::atomic<int> cancelled{0};
  auto o = options();
  o.metrics = [&](const MetricEvent& event) {
    using Kind = MetricEvent::Kind;
    if (event.kind != Kind::session_started && event.kind != Kind::session_ended) {
      EXPECT_EQ(event.lock, "a");
    }
    acquired += event.kind == Kind::acquired;
    released += event.kind == Kind::released;
    lost += event.kind == Kind::lost;
    timed_out += event.kind == Kind::timed_out;
    cancelled += event.kind == Kind::cancelled;
  };
  auto client = open(std::move(o));
  auto other = open();
  {
    auto lock = client.mutex("a").acquire(patient());
    EXPECT_FALSE(client.mutex("a").try_acquire_for(10ms).has_value());
    ASSERT_TRUE(in_line("a", 1));
    std::stop_source stop;
    auto waiting = later(client.mutex("a"), patient(stop.get_token()));
    ASSERT_TRUE(in_line("a", 2));
    stop.request_stop();
    ASSERT_TRUE(ready(waiting));
    lock.release();
  }
  auto lock = client.mutex("a").acquire(patient());
  ASSERT_TRUE(evict("a", lock.token(), other));
  EXPECT_TRUE(soon("all metrics",
                   [&] {
                     return acquired == 2 && released == 1 && lost == 1 && timed_out == 1 &&
                            cancelled == 1;
                   }))
      << acquired << released << lost << timed_out << cancelled;
}

}  // namespace
}  // namespace baton::conformance
