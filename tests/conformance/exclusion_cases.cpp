// Two locks on one name are never valid at the same time. The cases with loops increment a counter
// under the lock and record the boot-clock interval of each hold. With a second holder an update of
// the counter is lost, or two intervals overlap.
#include "conformance/fixture.h"
#include "history/holds.h"
#include "support/child.h"
#include "support/temp_dir.h"

#include <atomic>
#include <fstream>
#include <thread>

namespace baton::conformance {
namespace {

using test::Child;

// Not atomic on purpose: only the lock under test protects it.
struct Plain {
  long value = 0;
  void add_one() {
    const long before = value;
    std::this_thread::yield();
    value = before + 1;
  }
};

// The same for threads of several clients. The store orders the memory accesses of its clients, but
// ThreadSanitizer does not see that (for example, the file store maps a file twice in one process).
// So the value is atomic, but load and store are still two steps.
struct Shared {
  std::atomic<long> value{0};
  void add_one() {
    const long before = value.load(std::memory_order_relaxed);
    std::this_thread::yield();
    value.store(before + 1, std::memory_order_relaxed);
  }
};

constexpr int kThreads = 4;

// Starts kThreads threads with their own mutexes. Each thread calls `turn` this many times.
template <class Open, class Turn>
void at_once(Open open_mutex, int rounds, Turn turn) {
  std::vector<std::jthread> all;
  for (int t = 0; t < kThreads; ++t) {
    all.emplace_back([&turn, rounds, mutex = open_mutex()]() mutable {
      for (int i = 0; i < rounds; ++i) turn(mutex, i);
    });
  }
}

TEST_P(Exclusion, ThreadsOfOneClientExcludeEachOther) {
  auto client = open();
  const int rounds = rig().rounds(scaled(300));
  Plain counter;
  history::Log holds;
  const auto mutex_of_client = [&] { return client.mutex("a"); };
  at_once(mutex_of_client, rounds, [&](DistributedMutex& mutex, int) {
    auto lock = mutex.acquire(patient());
    const auto begin = boot_now();
    counter.add_one();
    holds.add({begin, boot_now(), lock.token()});
  });
  EXPECT_EQ(counter.value, kThreads * rounds);
  EXPECT_TRUE(exclusive_and_ordered(holds.all()));
}

TEST_P(Exclusion, ThreadsThatUseLockAndUnlockExcludeEachOther) {
  auto client = open();
  const int rounds = rig().rounds(scaled(300));
  Plain counter;
  history::Log holds;
  const auto mutex_of_client = [&] { return client.mutex("a"); };
  at_once(mutex_of_client, rounds, [&](DistributedMutex& mutex, int) {
    const std::lock_guard guard(mutex);
    const auto begin = boot_now();
    counter.add_one();
    holds.add({begin, boot_now(), mutex.token()});
  });
  EXPECT_EQ(counter.value, kThreads * rounds);
  EXPECT_TRUE(exclusive_and_ordered(holds.all()));
}

TEST_P(Exclusion, ClientsOfOneProcessExcludeEachOther) {
  const int rounds = rig().rounds(scaled(200));
  Shared counter;
  history::Log holds;
  std::vector<Client> clients;
  const auto mutex_of_next = [&] { return clients.emplace_back(open()).mutex("a"); };
  at_once(mutex_of_next, rounds, [&](DistributedMutex& mutex, int i) {
    auto lock = mutex.acquire(patient());
    const auto begin = boot_now();
    counter.add_one();
    holds.add({begin, boot_now(), lock.token()});
    if (i % 2 == 0) lock.release();
  });
  EXPECT_EQ(counter.value, kThreads * rounds);
  EXPECT_TRUE(exclusive_and_ordered(holds.all()));
}

TEST_P(Exclusion, SecondClientIsRefusedWhileTheFirstHolds) {
  auto first = open();
  auto second = open();
  auto lock = first.mutex("a").acquire(patient());
  EXPECT_FALSE(second.mutex("a").try_acquire().has_value());
  EXPECT_FALSE(second.mutex("a").try_lock());
  EXPECT_EQ(error_of([&] { (void)second.mutex("a").acquire_for(100ms); }), Errc::timeout);
  lock.release();
  EXPECT_TRUE(second.mutex("a").try_acquire());
}

// Finds entries that are made per session or per name instead of per acquire (etcd#11360).
TEST_P(Exclusion, TwoHandlesOfOneNameAreTheSameLock) {
  auto client = open();
  auto one = client.mutex("a");
  auto two = client.mutex("a");
  auto copy = one;
  auto lock = one.acquire(patient());
  EXPECT_FALSE(two.try_acquire().has_value());
  EXPECT_FALSE(copy.try_acquire().has_value());
  EXPECT_FALSE(one.try_acquire().has_value());
  EXPECT_EQ(entries("a"), 1u);
}

TEST_P(Exclusion, ReleaseTakesNobodyElsesEntry) {
  auto client = open();
  auto mutex = client.mutex("a");
  auto first = mutex.acquire(patient());
  first.release();
  auto second = mutex.acquire(patient());
  // A second release of `first` must not remove the entry of `second` (etcd#22082).
  EXPECT_EQ(error_of([&] { first.release(); }), Errc::not_held);
  { Lock gone = std::move(first); }
  second.verify();
  EXPECT_TRUE(second.valid());
  EXPECT_EQ(entries("a"), 1u);
}

TEST_P(Exclusion, ProcessesExcludeEachOther) {
  BATON_NEEDS(Can::cross_processes);
  const test::TempDir directory;
  const int processes = 4;
  const int rounds = rig().rounds(scaled(200));
  const std::string file = directory / "counter";
  history::Log holds;
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < processes; ++i) {
    children.push_back(std::make_unique<Child>(
        std::vector<std::string>{"loop", rig().url(), "a", std::to_string(rounds), file}));
  }
  // This process takes part too.
  {
    auto client = open();
    auto mutex = client.mutex("a");
    for (int i = 0; i < rounds; ++i) {
      auto lock = mutex.acquire(patient());
      const auto begin = boot_now();
      holds.add({begin, boot_now(), lock.token()});
    }
  }
  for (auto& child : children) {
    EXPECT_TRUE(child->line_with("done"));
    EXPECT_EQ(child->exit_code(), 0);
  }
  holds.add(history::read(file + ".holds"));
  EXPECT_EQ(holds.size(), static_cast<std::size_t>((processes + 1) * rounds));
  EXPECT_TRUE(exclusive_and_ordered(holds.all()));
  long long value = 0;
  std::ifstream(file, std::ios::binary).read(reinterpret_cast<char*>(&value), sizeof value);
  EXPECT_EQ(value, processes * rounds);
}

}  // namespace
}  // namespace baton::conformance
