// Handlers in unusual cases: destroyed captures, and executors of all kinds.
#include <baton/baton.h>

#include "support/eventually.h"
#include "support/log_capture.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace baton {
namespace {

using test::eventually;
using namespace std::chrono_literals;

ClientOptions quiet(const test::LogCapture& log) {
  ClientOptions options;
  options.log = log.sink();
  return options;
}

TEST(Async, HandlerIsDestroyedAfterItsCall) {
  const test::LogCapture log;
  auto client = Client::connect("memory:", quiet(log));
  auto captured = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = captured;
  std::atomic<bool> called{false};
  client.mutex("a").acquire_async(
      {}, [c = std::move(captured), &called](Result<Lock>) { called = true; });
  EXPECT_TRUE(eventually("the call", [&] { return called.load(); }));
  EXPECT_TRUE(eventually("the end of the handler", [&] { return watch.expired(); }));
}

TEST(Async, WaitingHandlerIsDestroyedWithItsClient) {
  const test::LogCapture log;
  auto captured = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = captured;
  {
    auto client = Client::connect("memory:", quiet(log));
    auto lock = client.mutex("a").acquire();
    client.mutex("a").acquire_async({}, [c = std::move(captured)](Result<Lock>) {});
  }
  EXPECT_TRUE(eventually("the end of the handler", [&] { return watch.expired(); }));
}

TEST(Async, LockOfAHandlerOutlivesEverything) {
  const test::LogCapture log;
  std::promise<Lock> promise;
  auto future = promise.get_future();
  {
    auto client = Client::connect("memory:", quiet(log));
    client.mutex("a").acquire_async(
        {}, [&](Result<Lock> r) { promise.set_value(std::move(r).value()); });
    ASSERT_EQ(future.wait_for(30s), std::future_status::ready);
  }
  auto lock = future.get();
  EXPECT_EQ(lock.lost_reason(), Errc::closed);
}

// The executor destroys the task without running it. The lock that the task owns is released.
TEST(Async, ExecutorThatDropsTasksLeaksNoLock) {
  const test::LogCapture log;
  auto options = quiet(log);
  std::atomic<int> dropped{0};
  options.executor = [&](const std::function<void()>&) { ++dropped; };
  auto client = Client::connect("memory:async-drop", options);
  auto other = Client::connect("memory:async-drop", quiet(log));
  client.mutex("a").acquire_async({}, [](Result<Lock>) {});
  EXPECT_TRUE(eventually("the drop", [&] { return dropped == 1; }));
  EXPECT_TRUE(other.mutex("a").acquire_for(10s).valid());
}

TEST(Async, ExecutorThatThrowsIsLogged) {
  const test::LogCapture log;
  auto options = quiet(log);
  options.executor = [](const std::function<void()>&) { throw std::runtime_error("full 4711"); };
  auto client = Client::connect("memory:async-throw", options);
  client.mutex("a").acquire_async({}, [](Result<Lock>) {});
  EXPECT_TRUE(eventually("the log line", [&] { return log.count(LogLevel::error, "4711") == 1; }));
  EXPECT_TRUE(client.mutex("a").acquire_for(10s).valid());
}

TEST(Async, ExecutorMayBeAPoolOfThreads) {
  const test::LogCapture log;
  std::mutex mutex;
  std::vector<std::jthread> pool;
  {
    auto options = quiet(log);
    options.executor = [&](std::function<void()> task) {
      const std::lock_guard guard(mutex);
      pool.emplace_back(std::move(task));
    };
    auto client = Client::connect("memory:async-pool", options);
    std::atomic<int> inside{0};
    std::atomic<int> done{0};
    for (int i = 0; i < 100; ++i) {
      client.mutex("a").acquire_async({}, [&](Result<Lock> r) {
        EXPECT_TRUE(r);
        EXPECT_EQ(++inside, 1);
        --inside;
        ++done;
      });
    }
    EXPECT_TRUE(eventually("all", [&] { return done == 100; }));
  }
}

TEST(Async, ManyClientsManyHandlers) {
  const test::LogCapture log;
  std::atomic<int> done{0};
  std::vector<Client> clients;
  for (int i = 0; i < 8; ++i) clients.push_back(Client::connect("memory:async-many", quiet(log)));
  for (int i = 0; i < 400; ++i) {
    clients[static_cast<std::size_t>(i) % clients.size()].mutex("a").acquire_async(
        {}, [&](Result<Lock> r) { done += r.has_value(); });
  }
  EXPECT_TRUE(eventually("all", [&] { return done == 400; }));
}

}  // namespace
}  // namespace baton
