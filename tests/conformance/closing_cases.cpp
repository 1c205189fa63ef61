// Closing a client: its locks and mutexes can outlive it, its waiters end with Error(closed), and
// no entries, threads or descriptors are left.
#include "conformance/fixture.h"
#include "support/child.h"

#include <fcntl.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <semaphore>
#include <thread>

namespace baton::conformance {
namespace {

TEST_P(Closing, LockAndMutexOutliveTheClient) {
  std::optional<Client> client(open());
  auto mutex = client->mutex("a");
  auto lock = mutex.acquire(patient());
  const auto token = lock.token();
  const auto lost = lock.lost_token();
  client.reset();
  EXPECT_FALSE(lock.valid());
  EXPECT_EQ(lock.state(), LockState::lost);
  EXPECT_EQ(lock.lost_reason(), Errc::closed);
  EXPECT_EQ(lock.token(), token);
  EXPECT_EQ(lock.name(), "a");
  EXPECT_TRUE(soon("lost_token() to fire", [&] { return lost.stop_requested(); }));
  EXPECT_TRUE(in_line("a", 0));
  EXPECT_EQ(error_of([&] { lock.verify(); }), Errc::lock_lost);
  EXPECT_EQ(error_of([&] { lock.release(); }), Errc::lock_lost);
  EXPECT_EQ(mutex.name(), "a");
  EXPECT_EQ(error_of([&] { (void)mutex.acquire(patient()); }), Errc::closed);
  EXPECT_EQ(error_of([&] { (void)mutex.acquire(); }), Errc::closed);
  EXPECT_EQ(error_of([&] { (void)mutex.try_acquire(); }), Errc::closed);
  EXPECT_EQ(error_of([&] { mutex.lock(); }), Errc::closed);
  EXPECT_EQ(error_of([&] { (void)mutex.try_lock(); }), Errc::closed);
  EXPECT_FALSE(mutex.valid());
  mutex.unlock();
  const auto result = mutex.acquire_result(patient());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().errc(), Errc::closed);
}

TEST_P(Closing, HoldByLockEndsWithTheClient) {
  auto client = open();
  auto mutex = client.mutex("a");
  mutex.lock();
  const auto lost = mutex.lost_token();
  client.close();
  EXPECT_FALSE(mutex.valid());
  EXPECT_TRUE(soon("lost_token() to fire", [&] { return lost.stop_requested(); }));
  mutex.unlock();
  EXPECT_TRUE(in_line("a", 0));
}

TEST_P(Closing, AsyncAcquireAfterCloseAnswersClosedOnce) {
  auto client = open();
  auto mutex = client.mutex("a");
  client.close();
  std::promise<Errc> promise;
  mutex.acquire_async(patient(), [&](Result<Lock> r) {
    promise.set_value(r ? Errc::store_error : r.error().errc());
  });
  auto future = promise.get_future();
  ASSERT_TRUE(ready(future));
  EXPECT_EQ(future.get(), Errc::closed);
}

TEST_P(Closing, EveryCallOfAClosedClientSaysClosed) {
  auto client = open();
  client.close();
  EXPECT_EQ(error_of([&] { (void)client.inspect("a"); }), Errc::closed);
  EXPECT_EQ(error_of([&] { (void)client.list(); }), Errc::closed);
  EXPECT_EQ(error_of([&] { (void)client.evict("a", "x"); }), Errc::closed);
  EXPECT_EQ(error_of([&] { (void)client.mutex("a").acquire(patient()); }), Errc::closed);
  EXPECT_EQ(client.session().state, SessionState::closed);
  client.close();
}

TEST_P(Closing, WaitersEndWithClosed) {
  auto holder = open();
  auto client = open();
  auto lock = holder.mutex("a").acquire(patient());
  auto one = later(client.mutex("a"), {});
  auto two = later(client.mutex("a"));
  std::promise<Errc> promise;
  client.mutex("a").acquire_async(
      {}, [&](Result<Lock> r) { promise.set_value(r ? Errc::store_error : r.error().errc()); });
  ASSERT_TRUE(in_line("a", 4));
  const Stopwatch watch;
  client.close();
  EXPECT_LE(watch.elapsed(), 5s + kSlack);
  auto three = promise.get_future();
  ASSERT_TRUE(ready(one));
  ASSERT_TRUE(ready(two));
  ASSERT_TRUE(ready(three));
  EXPECT_EQ(error_of([&] { (void)one.get(); }), Errc::closed);
  EXPECT_EQ(error_of([&] { (void)two.get(); }), Errc::closed);
  EXPECT_EQ(three.get(), Errc::closed);
  EXPECT_TRUE(in_line("a", 1));
  lock.verify();
}

TEST_P(Closing, HandsTheLockToTheNext) {
  auto one = open();
  auto two = open();
  auto lock = one.mutex("a").acquire(patient());
  auto waiting = later(two.mutex("a"));
  ASSERT_TRUE(in_line("a", 2));
  one.close();
  ASSERT_TRUE(ready(waiting));
  auto next = waiting.get();
  EXPECT_TRUE(next.valid());
  EXPECT_FALSE(lock.valid());
}

TEST_P(Closing, FromSeveralThreadsAtOnce) {
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  {
    std::vector<std::jthread> all;
    for (int i = 0; i < 4; ++i) all.emplace_back([&] { client.close(); });
  }
  EXPECT_EQ(client.session().state, SessionState::closed);
  EXPECT_FALSE(lock.valid());
}

TEST_P(Closing, WhileOthersAcquireAndRelease) {
  for (int i = 0; i < rig().rounds(scaled(30)); ++i) {
    auto client = open();
    std::vector<std::jthread> all;
    for (int t = 0; t < 3; ++t) {
      all.emplace_back([mutex = client.mutex("a")]() mutable {
        for (;;) {
          const auto lock = mutex.acquire_result(within(kLong));
          if (lock) continue;
          EXPECT_EQ(lock.error().errc(), Errc::closed);
          return;
        }
      });
    }
    client.close();
  }
  EXPECT_TRUE(in_line("a", 0));
}

TEST_P(Closing, FromInsideAHandler) {
  auto client = open();
  auto lock = client.mutex("b").acquire(patient());
  std::atomic<int> closed{0};
  for (int i = 0; i < 3; ++i) {
    client.mutex("b").acquire_async(
        patient(), [&](Result<Lock> r) { closed += !r && r.error().errc() == Errc::closed; });
  }
  std::promise<bool> promise;
  client.mutex("a").acquire_async(patient(), [&](Result<Lock> r) {
    client.close();
    promise.set_value(r.has_value() && !r->valid());
  });
  auto future = promise.get_future();
  ASSERT_TRUE(ready(future));
  EXPECT_TRUE(future.get());
  EXPECT_TRUE(soon("the other handlers to hear of it", [&] { return closed == 3; }));
}

TEST_P(Closing, EndsABlockedLockWithClosed) {
  auto holder = open();
  auto client = open();
  auto lock = holder.mutex("a").acquire(patient());
  auto blocked = std::async(std::launch::async, [mutex = client.mutex("a")]() mutable {
    return error_of([&] { mutex.lock(); });
  });
  ASSERT_TRUE(in_line("a", 2));
  client.close();
  ASSERT_TRUE(ready(blocked));
  EXPECT_EQ(blocked.get(), Errc::closed);
}

// User code that blocks must not keep close() from returning within 5 s.
TEST_P(Closing, IsBoundedWhileUserCodeBlocks) {
  auto client = open();
  auto other = open();
  std::binary_semaphore entered{0};
  std::counting_semaphore<2> leave{0};
  std::atomic<int> left{0};
  client.mutex("b").acquire_async(patient(), [&](Result<Lock>) {
    entered.release();
    (void)leave.try_acquire_for(kLong);
    ++left;
  });
  ASSERT_TRUE(entered.try_acquire_for(kLong));
  auto lock = client.mutex("a").acquire(patient());
  std::optional<std::stop_callback<std::function<void()>>> on_loss;
  on_loss.emplace(lock.lost_token(), [&] {
    entered.release();
    (void)leave.try_acquire_for(kLong);
    ++left;
  });
  ASSERT_TRUE(evict("a", lock.token(), other));
  ASSERT_TRUE(entered.try_acquire_for(kLong));
  const Stopwatch watch;
  client.close();
  EXPECT_LE(watch.elapsed(), 5s + kSlack);
  EXPECT_EQ(left, 0);
  leave.release(2);
  EXPECT_TRUE(soon("the user code to end", [&] { return left == 2; }));
}

TEST_P(Closing, DestroyedInsideAHandler) {
  auto client = std::make_shared<std::optional<Client>>(open());
  std::promise<void> promise;
  (*client)->mutex("a").acquire_async(patient(), [&promise, client](Result<Lock>) {
    client->reset();
    promise.set_value();
  });
  auto future = promise.get_future();
  ASSERT_TRUE(ready(future));
  client.reset();
  EXPECT_TRUE(in_line("a", 0));
}

TEST_P(Closing, FromInsideALossCallback) {
  auto client = open();
  auto other = open();
  auto lock = client.mutex("a").acquire(patient());
  std::promise<void> promise;
  const std::stop_callback on_loss(lock.lost_token(), [&] {
    client.close();
    promise.set_value();
  });
  ASSERT_TRUE(evict("a", lock.token(), other));
  auto future = promise.get_future();
  ASSERT_TRUE(ready(future));
}

TEST_P(Closing, MoveAssignmentClosesWhatItWas) {
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  client = open();
  EXPECT_EQ(lock.lost_reason(), Errc::closed);
  EXPECT_EQ(client.session().state, SessionState::connected);
  EXPECT_TRUE(client.mutex("a").acquire(patient()).valid());
  Client moved = std::move(client);
  EXPECT_TRUE(moved.mutex("a").acquire(patient()).valid());
}

TEST_P(Closing, GivesBackThreadsAndDescriptors) {
  const auto use = [&] {
    auto client = open();
    auto lock = client.mutex("a").acquire(patient());
    client.mutex("a").acquire_async(within(1ms), [](Result<Lock>) {});
    (void)client.mutex("a").try_acquire_for(20ms);
  };
  use();
  (void)entries("a");
  const int threads = test::threads_of_this_process();
  const int descriptors = test::descriptors_of_this_process();
  for (int i = 0; i < rig().rounds(scaled(20)); ++i) use();
  EXPECT_TRUE(soon("as many threads as before",
                   [&] { return test::threads_of_this_process() <= threads; }));
  EXPECT_TRUE(soon("as many descriptors as before",
                   [&] { return test::descriptors_of_this_process() <= descriptors; }));
}

TEST_P(Closing, NoDescriptorIsPassedOnByExec) {
  const auto inheritable = [] {
    int n = 0;
    for (const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
      const int flags = ::fcntl(std::stoi(file.path().filename()), F_GETFD);
      n += flags >= 0 && (flags & FD_CLOEXEC) == 0;
    }
    return n;
  };
  const int before = inheritable();
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  client.mutex("a").acquire_async(patient(), [](Result<Lock>) {});
  ASSERT_TRUE(in_line("a", 2));
  EXPECT_EQ(inheritable(), before);
}

}  // namespace
}  // namespace baton::conformance
