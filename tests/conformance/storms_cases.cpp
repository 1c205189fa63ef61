// Many calls that fail, time out or are cancelled, most of them on several threads. Exclusion must
// hold, and no entry may be left.
#include "conformance/fixture.h"
#include "history/holds.h"

#include <atomic>
#include <random>
#include <thread>

namespace baton::conformance {
namespace {

TEST_P(Storms, FailingTriesLeaveNoEntry) {
  auto one = open();
  auto two = open();
  auto lock = one.mutex("a").acquire(patient());
  auto mutex = two.mutex("a");
  const int tries = rig().rounds(scaled(100'000));
  for (int i = 0; i < tries; ++i) ASSERT_FALSE(mutex.try_lock());
  EXPECT_EQ(entries("a"), 1u);
  lock.verify();
  lock.release();
  EXPECT_TRUE(mutex.try_acquire());
}

TEST_P(Storms, TriesFromManyThreadsNeverBothSucceed) {
  auto client = open();
  auto other = open();
  std::atomic<int> inside{0};
  std::atomic<int> wins{0};
  {
    std::vector<std::jthread> all;
    for (int t = 0; t < 4; ++t) {
      all.emplace_back([&, mutex = (t % 2 == 0 ? client : other).mutex("a")]() mutable {
        for (int i = 0; i < rig().rounds(scaled(2000)); ++i) {
          auto lock = mutex.try_acquire();
          if (!lock) continue;
          EXPECT_EQ(++inside, 1);
          ++wins;
          --inside;
        }
      });
    }
  }
  EXPECT_GT(wins, 0);
  EXPECT_TRUE(in_line("a", 0));
}

TEST_P(Storms, RandomTimeoutsAndCancelsKeepExclusion) {
  const int threads = 8;
  const int rounds = rig().rounds(scaled(300));
  std::vector<Client> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(open());
  history::Log holds;
  std::atomic<int> gave_up{0};
  {
    std::vector<std::jthread> all;
    for (int t = 0; t < threads; ++t) {
      all.emplace_back([&, t] {
        auto mutex = clients[static_cast<std::size_t>(t) % clients.size()].mutex("a");
        std::mt19937 random(static_cast<unsigned>(t));
        for (int i = 0; i < rounds; ++i) {
          std::stop_source stop;
          std::optional<std::jthread> canceller;
          if (random() % 8 == 0) {
            canceller.emplace([&stop, n = random() % 3000] {
              for (unsigned k = 0; k < n; ++k) std::atomic_signal_fence(std::memory_order_seq_cst);
              stop.request_stop();
            });
          }
          auto lock = mutex.acquire_result(within(milliseconds(random() % 20), stop.get_token()));
          if (!lock) {
            const auto code = lock.error().errc();
            EXPECT_TRUE(code == Errc::timeout || code == Errc::cancelled) << lock.error().what();
            ++gave_up;
            continue;
          }
          const auto begin = boot_now();
          if (random() % 4 == 0) std::this_thread::yield();
          holds.add({begin, boot_now(), lock->token()});
          if (random() % 2 == 0) lock->release();
        }
      });
    }
  }
  EXPECT_TRUE(exclusive_and_ordered(holds.all()));
  EXPECT_EQ(static_cast<int>(holds.size()) + gave_up, threads * rounds);
  EXPECT_TRUE(in_line("a", 0)) << holds.size() << " grants, " << gave_up << " gave up";
}

TEST_P(Storms, ManyLocksAtOnceDoNotMix) {
  auto client = open();
  const int names = 20;
  const int rounds = rig().rounds(scaled(100));
  std::vector<long> counters(names, 0);
  {
    std::vector<std::jthread> all;
    for (int t = 0; t < 4; ++t) {
      all.emplace_back([&, t] {
        std::mt19937 random(static_cast<unsigned>(t));
        for (int i = 0; i < rounds; ++i) {
          const auto n = random() % names;
          auto lock = client.mutex("n/" + std::to_string(n)).acquire(patient());
          const long before = counters[n];
          std::this_thread::yield();
          counters[n] = before + 1;
        }
      });
    }
  }
  long sum = 0;
  for (const long n : counters) sum += n;
  EXPECT_EQ(sum, 4L * rounds);
}

TEST_P(Storms, ClientsThatComeAndGoWhileOthersWait) {
  auto holder = open();
  for (int i = 0; i < rig().rounds(scaled(20)); ++i) {
    auto lock = holder.mutex("a").acquire(patient());
    std::vector<std::jthread> all;
    for (int t = 0; t < 3; ++t) {
      all.emplace_back([&, client = open()]() mutable {
        (void)client.mutex("a").acquire_result(within(5ms));
        client.close();
      });
    }
    auto waiting = later(holder.mutex("a"));
    { Lock gone = std::move(lock); }
    ASSERT_TRUE(ready(waiting));
    EXPECT_TRUE(waiting.get().valid());
  }
}

}  // namespace
}  // namespace baton::conformance
