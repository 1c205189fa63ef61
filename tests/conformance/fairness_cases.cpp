// The queue is first in, first out, and one release wakes one waiter. The tests learn the order of
// joining from the number of entries, never by sleeping.
#include "conformance/fixture.h"
#include "support/child.h"

#include <atomic>
#include <mutex>
#include <numeric>

namespace baton::conformance {
namespace {

using test::Child;

TEST_P(Fairness, ClientsAreServedInTheOrderTheyJoined) {
  const int waiters = 8;
  auto holder = open();
  auto lock = holder.mutex("a").acquire(patient());
  std::mutex order_mutex;
  std::vector<int> order;
  std::vector<Client> clients;
  std::vector<std::future<void>> all;
  for (int i = 0; i < waiters; ++i) clients.push_back(open());
  for (int i = 0; i < waiters; ++i) {
    all.push_back(std::async(std::launch::async, [&, i] {
      auto mine = clients[i].mutex("a").acquire(patient());
      const std::lock_guard guard(order_mutex);
      order.push_back(i);
    }));
    ASSERT_TRUE(in_line("a", static_cast<std::size_t>(i) + 2));
  }
  lock.release();
  for (auto& one : all) ASSERT_TRUE(ready(one));
  std::vector<int> wanted(waiters);
  std::iota(wanted.begin(), wanted.end(), 0);
  EXPECT_EQ(order, wanted);
}

// Waiters of one client and of several clients, blocking and asynchronous, share one queue.
TEST_P(Fairness, OneQueueForAllStylesAndClients) {
  auto one = open();
  auto two = open();
  auto lock = one.mutex("a").acquire(patient());
  std::mutex order_mutex;
  std::vector<int> order;
  const auto note = [&](int i) {
    const std::lock_guard guard(order_mutex);
    order.push_back(i);
  };
  std::promise<void> done1;
  std::promise<void> done3;
  one.mutex("a").acquire_async(patient(), [&](Result<Lock> r) {
    note(r ? 0 : -1);
    r = Error(Errc::timeout, "given back");
    done1.set_value();
  });
  ASSERT_TRUE(in_line("a", 2));
  auto second = std::async(std::launch::async, [&] {
    auto mutex = two.mutex("a");
    mutex.lock();
    note(1);
    mutex.unlock();
  });
  ASSERT_TRUE(in_line("a", 3));
  two.mutex("a").acquire_async(patient(), [&](Result<Lock> r) {
    note(r ? 2 : -1);
    done3.set_value();
  });
  ASSERT_TRUE(in_line("a", 4));
  auto fourth = std::async(std::launch::async, [&] {
    auto mine = one.mutex("a").acquire(patient());
    note(3);
  });
  ASSERT_TRUE(in_line("a", 5));
  lock.release();
  auto first = done1.get_future();
  auto third = done3.get_future();
  ASSERT_TRUE(ready(first));
  ASSERT_TRUE(ready(second));
  ASSERT_TRUE(ready(third));
  ASSERT_TRUE(ready(fourth));
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

TEST_P(Fairness, TryLockDoesNotOvertakeTheLine) {
  auto one = open();
  auto two = open();
  auto lock = one.mutex("a").acquire(patient());
  auto waiting = later(two.mutex("a"));
  ASSERT_TRUE(in_line("a", 2));
  EXPECT_FALSE(one.mutex("a").try_acquire().has_value());
  EXPECT_EQ(entries("a"), 2u);
  lock.release();
  ASSERT_TRUE(ready(waiting));
}

TEST_P(Fairness, OneReleaseGrantsOneWaiter) {
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  const int waiters = 10;
  std::atomic<int> granted{0};
  std::mutex held_mutex;
  std::vector<Lock> held;
  for (int i = 0; i < waiters; ++i) {
    client.mutex("a").acquire_async(patient(), [&](Result<Lock> r) {
      const std::lock_guard guard(held_mutex);
      if (r) held.push_back(std::move(r).value());
      ++granted;
    });
  }
  ASSERT_TRUE(in_line("a", waiters + 1));
  lock.release();
  for (int i = 1; i <= waiters; ++i) {
    ASSERT_TRUE(soon("the next grant", [&] { return granted >= i; }));
    EXPECT_EQ(granted, i);
    EXPECT_EQ(entries("a"), static_cast<std::size_t>(waiters - i + 1));
    const std::lock_guard guard(held_mutex);
    ASSERT_EQ(held.size(), 1u);
    held.back().release();
    held.clear();
  }
}

// Finds a thundering herd: a process at the end of the queue must sleep while waiters ahead of it
// come and go.
TEST_P(Fairness, WaiterFarBackSleepsThroughReleasesAhead) {
  BATON_NEEDS(Can::cross_processes);
  auto client = open();
  const int ahead = 60;
  auto lock = client.mutex("a").acquire(patient());
  std::atomic<int> granted{0};
  std::mutex held_mutex;
  std::vector<Lock> held;
  for (int i = 0; i < ahead; ++i) {
    client.mutex("a").acquire_async(patient(), [&](Result<Lock> r) {
      const std::lock_guard guard(held_mutex);
      if (r) held.push_back(std::move(r).value());
      ++granted;
    });
  }
  ASSERT_TRUE(in_line("a", static_cast<std::size_t>(ahead) + 1));
  Child back({"wait", rig().url(), "a", "60000"});
  ASSERT_TRUE(in_line("a", static_cast<std::size_t>(ahead) + 2));
  // Counts how often the process wakes while nothing is released: heartbeats, periodic looks,
  // threads of libraries.
  const long idle_before = back.wakes();
  const Stopwatch idle;
  ASSERT_TRUE(soon("some quiet time", [&] { return idle.elapsed() > 500ms; }));
  const long idle_wakes = back.wakes() - idle_before;
  const auto idle_time = idle.elapsed();

  const Stopwatch watch;
  const long before = back.wakes();
  lock.release();
  for (int i = 1; i < ahead; ++i) {
    ASSERT_TRUE(soon("the next grant", [&] { return granted >= i; }));
    const std::lock_guard guard(held_mutex);
    held.back().release();
  }
  const long woken = back.wakes() - before;
  // With a thundering herd every release wakes the process. The limit is half of the releases, plus
  // twice the wake-ups of a quiet time of this length.
  EXPECT_LT(woken, ahead / 2 + 2 * idle_wakes * watch.elapsed().count() / idle_time.count())
      << "of " << ahead << " releases; " << idle_wakes << " in " << idle_time.count()
      << " ms of quiet";
  ASSERT_TRUE(soon("the last one ahead", [&] { return granted >= ahead; }));
  {
    const std::lock_guard guard(held_mutex);
    held.clear();
  }
  EXPECT_TRUE(back.line_with("held"));
  EXPECT_EQ(back.exit_code(), 0);
}

TEST_P(Fairness, ProcessesAreServedInTheOrderTheyJoined) {
  BATON_NEEDS(Can::cross_processes);
  auto client = open();
  auto lock = client.mutex("a").acquire(patient());
  std::vector<std::unique_ptr<Child>> children;
  for (std::size_t i = 0; i < 5; ++i) {
    children.push_back(
        std::make_unique<Child>(std::vector<std::string>{"wait", rig().url(), "a", "60000"}));
    ASSERT_TRUE(in_line("a", i + 2));
  }
  const auto released = boot_now();
  lock.release();
  unsigned long long last = static_cast<unsigned long long>(released.count());
  for (auto& child : children) {
    const auto line = child->line_with("held");
    ASSERT_TRUE(line);
    EXPECT_GT(test::number_in(*line, 1), last);
    last = test::number_in(*line, 1);
    EXPECT_EQ(child->exit_code(), 0);
  }
}

}  // namespace
}  // namespace baton::conformance
