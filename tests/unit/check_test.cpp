// A broken invariant is reported, in builds with BATON_CHECKS.
#include "common/base/check.h"

#include "common/base/clock.h"
#include "common/base/thread_loop.h"
#include "common/client/hold.h"
#include "common/seam/lock_name.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace baton::internal {
namespace {

std::vector<std::string>& reports() {
  static std::vector<std::string> all;
  return all;
}

// Collects the reports of broken invariants. Skips the test in a build without BATON_CHECKS.
class Checks : public ::testing::Test {
 protected:
  void SetUp() override {
    ::testing::FLAGS_gtest_death_test_style = "threadsafe";
#ifndef BATON_CHECKS
    GTEST_SKIP() << "built without BATON_CHECKS";
#endif
    reports().clear();
    before_ =
        set_check_handler([](const BrokenInvariant& b) { reports().emplace_back(b.condition); });
  }
  void TearDown() override {
    if (before_ != nullptr) set_check_handler(before_);
  }
  CheckHandler before_ = nullptr;
};

TEST_F(Checks, BrokenInvariantIsReportedAndTheCodeContinues) {
  const int two = 2;
  BATON_ASSERT(two == 2);
  EXPECT_TRUE(reports().empty());
  BATON_ASSERT(two == 3);
  EXPECT_EQ(reports(), std::vector<std::string>{"two == 3"});
}

TEST_F(Checks, FirstHandlerEndsTheProgram) {
  set_check_handler(before_);
  EXPECT_DEATH(BATON_ASSERT(reports().size() == 1), "broken invariant at .*check_test.cpp:[0-9]+");
}

// A strand without a thread. The test's own thread is on the strand inside run() and finish().
class StillStrand final : public Strand {
 public:
  StillStrand() : Strand(real_clock(), [](std::string_view) {}) {}
  using Strand::finish;

 private:
  void ring() noexcept override {}
  void arm(Time) noexcept override {}
};

TEST_F(Checks, StateOfTheStrandIsTouchedOnlyOnTheStrand) {
  StillStrand strand;
  strand.run([&] {
    strand.defer([] {});
    strand.cancel(strand.at(kNever, [] {}));
  });
  EXPECT_TRUE(reports().empty());
  strand.defer([] {});
  strand.at(kNever, [] {});
  strand.cancel(TimerId::none);
  EXPECT_EQ(reports(), std::vector<std::string>(3, "on_strand()"));
}

TEST_F(Checks, CallsThatTakeTheStrandAreRefusedOnTheStrand) {
  StillStrand strand;
  strand.next_timer();
  EXPECT_TRUE(reports().empty());
  set_check_handler(before_);
  EXPECT_DEATH(strand.run([&] { strand.next_timer(); }), "broken invariant.*owned");
}

TEST_F(Checks, EveryThreadIsOnTheStrandOfAnEndedLoop) {
  StillStrand strand;
  EXPECT_FALSE(strand.on_strand());
  strand.finish([&] { EXPECT_TRUE(strand.on_strand()); });
  EXPECT_TRUE(strand.on_strand());
  strand.defer([] {});
  EXPECT_TRUE(reports().empty());
}

TEST_F(Checks, LoopWithAThreadKnowsItsStrand) {
  ThreadLoop loop(real_clock(), [](std::string_view) {});
  EXPECT_FALSE(loop.on_strand());
  std::atomic<int> inside{-1};
  loop.run([&] { inside = loop.on_strand() ? 1 : 0; });
  loop.stop();
  EXPECT_EQ(inside, 1);
  EXPECT_TRUE(loop.on_strand());
}

TEST_F(Checks, LossOfAHoldIsAnnouncedOnlyAfterItIsDeclared) {
  Hold hold(Hold::Parts{parse_lock_name("l").value(),
                        Nonce{1},
                        1,
                        &real_clock(),
                        std::make_shared<LeaseView>(),
                        nullptr,
                        {},
                        real_clock().now()});
  hold.announce_loss();
  EXPECT_EQ(reports().size(), 1U);
  hold.become_lost(Errc::evicted);
  hold.announce_loss();
  EXPECT_EQ(reports().size(), 1U);
}

}  // namespace
}  // namespace baton::internal
