// Strand: which steps a calling thread runs, and which it leaves to the loop's thread. The tests
// count steps and do not measure time.
#include "common/base/strand.h"

#include "common/base/clock.h"
#include "common/base/thread_loop.h"
#include "support/eventually.h"
#include "support/sanitized.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

namespace baton::internal {
namespace {

// A strand without a thread, on a stopped clock. The test calls turn() in place of the loop's
// thread.
class BareStrand final : public Strand {
 public:
  BareStrand() : Strand(clock_, [](std::string_view) { FAIL() << "a step failed"; }) {}

  void turn() {
    const Turn turn(*this);
    work();
  }
  // Repeats turn() while the strand has rung again.
  void turns() {
    for (int seen = 0; seen < rings_;) {
      seen = rings_;
      turn();
    }
  }
  int rings() const { return rings_.load(); }
  using Strand::wanted;
  Time now() const { return clock_.now(); }

 private:
  struct StoppedClock final : Clock {
    Time now() const noexcept override { return Time(std::chrono::hours(1)); }
    bool real() const noexcept override { return false; }
  };
  void ring() noexcept override { ++rings_; }
  void arm(Time) noexcept override {}

  StoppedClock clock_;
  std::atomic<int> rings_{0};
};

std::vector<int> up_to(int n) {
  std::vector<int> all;
  for (int i = 0; i < n; ++i) all.push_back(i);
  return all;
}

TEST(StrandCaller, RunsItsOwnStepAndItsFollowUpsOnAnIdleLoop) {
  BareStrand strand;
  std::vector<int> done;
  strand.run([&] {
    done.push_back(0);
    strand.defer([&] {
      done.push_back(1);
      strand.defer([&] { done.push_back(2); });
    });
  });
  EXPECT_EQ(done, up_to(3));
  EXPECT_EQ(strand.rings(), 0) << "the loop need not hear of it";
}

TEST(StrandCaller, LeavesALongLineOfStepsToTheLoop) {
  BareStrand strand;
  constexpr int kLine = 1000;
  std::vector<int> done;
  for (int i = 0; i < kLine; ++i) strand.post([&done, i] { done.push_back(i); });
  const int rings = strand.rings();
  strand.run([&] { done.push_back(kLine); });
  EXPECT_LE(done.size(), Strand::kForOthers);
  EXPECT_GT(strand.rings(), rings) << "the loop must hear of it";
  strand.turns();
  EXPECT_EQ(done, up_to(kLine + 1)) << "first come, first served";
}

// A posted step may report a reconnect and then serve thousands of waiters.
TEST(StrandCaller, RunsNothingThatWasPostedAndDoesNotOvertakeIt) {
  BareStrand strand;
  std::vector<int> done;
  strand.post([&] { done.push_back(0); });
  const int rings = strand.rings();
  strand.run([&] { done.push_back(1); });
  EXPECT_TRUE(done.empty());
  EXPECT_GT(strand.rings(), rings) << "the loop must hear of it";
  strand.turns();
  EXPECT_EQ(done, up_to(2));
}

TEST(StrandCaller, LeavesWhatItsStepPostsToTheLoop) {
  BareStrand strand;
  std::vector<int> done;
  strand.run([&] {
    done.push_back(0);
    strand.post([&] { done.push_back(1); });
  });
  EXPECT_EQ(done, up_to(1));
  strand.turns();
  EXPECT_EQ(done, up_to(2));
}

TEST(StrandCaller, RunsNoTimers) {
  BareStrand strand;
  constexpr int kTimers = 1000;
  std::vector<int> done;
  strand.run([&] {
    for (int i = 0; i < kTimers; ++i) strand.at(strand.now(), [&done, i] { done.push_back(i); });
  });
  EXPECT_EQ(done.size(), 0U);
  EXPECT_GT(strand.rings(), 0) << "the loop must hear of it";
  const int rings = strand.rings();
  strand.run([] {});
  EXPECT_EQ(done.size(), 0U);
  EXPECT_GT(strand.rings(), rings) << "they are still due";
  strand.turns();
  EXPECT_EQ(done, up_to(kTimers));
}

TEST(StrandCaller, LeavesAnEndlessChainOfFollowUpsToTheLoop) {
  BareStrand strand;
  constexpr int kChain = 1000;
  std::vector<int> done;
  const std::function<void(int)> link = [&](int i) {
    done.push_back(i);
    if (i + 1 < kChain) strand.defer([&link, i] { link(i + 1); });
  };
  strand.run([&] { link(0); });
  EXPECT_LE(done.size(), std::size_t{1} + Strand::kFollowUps);
  EXPECT_GT(strand.rings(), 0) << "the loop must hear of it";
  // The follow-ups of a step run before any other step, also before the step of a caller.
  const std::size_t before = done.size();
  strand.run([&] { done.push_back(kChain); });
  EXPECT_EQ(done.size(), before);
  strand.turns();
  EXPECT_EQ(done, up_to(kChain + 1));
}

TEST(StrandCaller, RunsWhatItsStepPostsIfThatIsBrief) {
  BareStrand strand;
  std::vector<int> done;
  strand.run([&] {
    strand.post_brief([&] { done.push_back(1); });
    done.push_back(0);
  });
  EXPECT_EQ(done, up_to(2));
}

// Steps that other callers added while a step ran. They are brief, and their callers wait.
TEST(StrandCaller, RunsAFewStepsOfOtherCallers) {
  constexpr int kOthers = 20;
  BareStrand strand;
  std::vector<int> done;
  strand.run([&] {
    done.push_back(0);
    std::thread([&] {
      for (int i = 1; i <= kOthers; ++i) strand.run([&done, i] { done.push_back(i); });
    }).join();
  });
  EXPECT_GT(done.size(), 1U);
  EXPECT_LE(done.size(), 1 + Strand::kForOthers);
  strand.turns();
  EXPECT_EQ(done, up_to(kOthers + 1));
}

// Otherwise callers could delay the heartbeats of the loop's thread.
TEST(StrandCaller, StepsAsideForTheLoop) {
  BareStrand strand;
  std::thread loop;
  std::vector<int> done;
  std::thread::id second;
  strand.run([&] {
    std::thread([&] {
      strand.run([&] {
        done.push_back(1);
        second = std::this_thread::get_id();
      });
    }).join();
    loop = std::thread([&] { strand.turn(); });
    while (!strand.wanted()) std::this_thread::yield();
    done.push_back(0);
  });
  // The loop's thread has its turn, or gets it soon.
  strand.run([&] { done.push_back(2); });
  const auto id = loop.get_id();
  loop.join();
  strand.turns();
  EXPECT_EQ(done, up_to(3));
  EXPECT_EQ(second, id);
}

// The same on a loop with a thread, with callers that come at any time.
TEST(StrandCaller, WorksForFewOthersOnARealLoop) {
  constexpr int kThreads = 4;
  const int kCalls = test::scaled(20'000);
  ThreadLoop loop(real_clock(), [](std::string_view) { FAIL() << "a step failed"; });
  static thread_local std::size_t ran = 0;  // steps on this thread during one call
  std::atomic<std::size_t> most{0};
  std::atomic<int> left{kThreads * kCalls};
  std::vector<std::vector<int>> done(kThreads);  // changed on the strand
  std::vector<std::thread> callers;
  for (int t = 0; t < kThreads; ++t) {
    callers.emplace_back([&, t] {
      for (int i = 0; i < kCalls; ++i) {
        ran = 0;
        loop.run([&, t, i] {
          ++ran;
          done[static_cast<std::size_t>(t)].push_back(i);
          loop.at(loop.now(), [&] { ran += 1000; });  // due at once; the caller must not run it
          --left;
        });
        if (ran > most.load()) most.store(ran);
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_TRUE(test::eventually("all is done", [&] { return left.load() == 0; }));
  loop.stop();
  EXPECT_LE(most.load(), 1 + Strand::kForOthers);
  for (const auto& one : done) EXPECT_EQ(one, up_to(kCalls)) << "each in its order";
}

}  // namespace
}  // namespace baton::internal
