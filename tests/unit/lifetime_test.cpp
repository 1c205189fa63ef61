// Slow, blocked or closed parts of a program delay no other client and no other lock.
#include <baton/baton.h>
#include <baton/testing.h>

#include "support/eventually.h"
#include "support/log_capture.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <semaphore>
#include <stdexcept>
#include <stop_token>
#include <thread>
#include <vector>

namespace baton {
namespace {

using namespace std::chrono_literals;
using test::eventually;

std::string holder_of(Client& client, const std::string& lock) {
  return client.inspect(lock).entries.at(0).id;
}

// Two threads call close() at once. The last reference goes on a thread of the client itself.
TEST(Lifetime, HandlerAndOwnerCloseAtOnce) {
  for (int i = 0; i < 200; ++i) {
    auto ended = std::make_shared<std::atomic<bool>>(false);
    auto client = std::make_shared<Client>(Client::connect("memory:"));
    auto inside = std::make_shared<std::binary_semaphore>(0);
    client->mutex("x").acquire_async({}, [inside, ended, client](Result<Lock>) mutable {
      inside->release();
      client->close();
      client.reset();
      ended->store(true);
    });
    inside->acquire();
    client->close();
    client.reset();
    EXPECT_TRUE(eventually("the handler to end", [&] { return ended->load(); }));
  }
}

// A log function that blocks, for example on a full pipe, must not stop heartbeats, losses and
// grants.
TEST(Lifetime, BlockedLogDelaysNobody) {
  std::binary_semaphore blocked(0);
  std::atomic<int> lines{0};
  ClientOptions options;
  options.log = [&](LogLevel, std::string_view) {
    if (lines.fetch_add(1) == 0) blocked.acquire();
  };
  auto client = Client::connect("memory:", options);
  auto other = Client::connect("memory:");
  Lock lock = client.mutex("lost").acquire();
  other.evict("lost", holder_of(other, "lost"));
  EXPECT_TRUE(eventually("the log to block", [&] { return lines.load() > 0; }));
  EXPECT_TRUE(eventually("the loss", [&] { return lock.lost_token().stop_requested(); }));
  EXPECT_TRUE(client.mutex("free").acquire_for(10s).valid());
  blocked.release();
}

TEST(Lifetime, BlockedStopCallbackDelaysNoOtherLoss) {
  auto client = Client::connect("memory:");
  std::vector<Lock> locks;
  for (int i = 0; i < 4; ++i) locks.push_back(client.mutex("l" + std::to_string(i)).acquire());
  std::latch go(1);
  std::vector<std::stop_token> told;
  for (auto& lock : locks) told.push_back(lock.lost_token());
  {
    const std::stop_callback blocks(told[0], [&] { go.wait(); });
    std::jthread closer([&] { client.close(); });
    EXPECT_TRUE(eventually("all others to be told", [&] {
      return told[1].stop_requested() && told[2].stop_requested() && told[3].stop_requested();
    }));
    go.count_down();
  }
}

TEST(Lifetime, HandlerThatThrowsInTheExecutorIsLogged) {
  const test::LogCapture log;
  ClientOptions options;
  options.log = log.sink();
  options.executor = [](std::function<void()> f) { std::thread(std::move(f)).detach(); };
  auto client = Client::connect("memory:", options);
  client.mutex("x").acquire_async({}, [](Result<Lock>) { throw std::runtime_error("mine"); });
  EXPECT_TRUE(eventually("the line", [&] { return log.count(LogLevel::error, "mine") == 1; }));
  EXPECT_TRUE(client.mutex("x").acquire_for(10s).valid());  // the handler's lock is free again
}

TEST(Lifetime, ExecutorThatDropsATaskReleasesItsLock) {
  ClientOptions options;
  options.executor = [](const std::function<void()>&) {};
  auto client = Client::connect("memory:", options);
  client.mutex("x").acquire_async({}, [](Result<Lock>) { FAIL(); });
  EXPECT_TRUE(client.mutex("x").acquire_for(10s).valid());
}

// Many threads that acquire without a pause must not keep one caller busy with the steps of the
// others.
TEST(Lifetime, BusyNeighboursCaptureNobody) {
  auto client = Client::connect("memory:");
  Lock held = client.mutex("held").acquire();
  std::atomic<bool> stop{false};
  std::vector<std::jthread> neighbours;
  for (int i = 0; i < 6; ++i) {
    neighbours.emplace_back([&, i] {
      auto mutex = client.mutex("n" + std::to_string(i));
      while (!stop) (void)mutex.acquire();
    });
  }
  for (int i = 0; i < 10; ++i) {
    const test::Stopwatch watch;
    EXPECT_FALSE(client.mutex("held").try_acquire_for(50ms).has_value());
    EXPECT_LT(watch.elapsed(), 2s);
  }
  stop = true;
}

TEST(Lifetime, SessionEndDuringVerifySaysLost) {
  testing::MemoryStore store("verify-lost");
  auto client = Client::connect("memory:verify-lost");
  Lock lock = client.mutex("x").acquire();
  store.drop_next_answer();
  std::atomic<bool> lost{false};
  std::jthread asker([&] {
    try {
      lock.verify(1h);
    } catch (const Error& e) {
      lost = e.errc() == Errc::lock_lost;
    }
  });
  // The virtual time does not move, so only the end of the session can end the wait.
  EXPECT_TRUE(eventually("the loss to be told", [&] {
    store.expire_sessions();
    return lost.load();
  }));
}

TEST(Lifetime, CloseAfterTheSessionEndedDoesNotWait) {
  testing::MemoryStore store("close-ended");
  auto client = Client::connect("memory:close-ended");
  Lock lock = client.mutex("x").acquire();
  store.disconnect();
  const test::Stopwatch watch;
  client.close();
  EXPECT_LT(watch.elapsed(), 5s);
  EXPECT_FALSE(lock.valid());
  EXPECT_EQ(lock.lost_reason(), Errc::closed);
}

}  // namespace
}  // namespace baton
