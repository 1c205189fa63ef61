// Tests the checks of the kill stress with records made by hand: each check objects to a wrong
// record, and to no other.
#include "chaos/checks.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <vector>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

class Checks : public ::testing::Test {
 protected:
  struct Made {
    std::uint32_t worker;
    std::uint64_t token;
    nanoseconds begin;
    nanoseconds end;  // 0: killed while holding
    nanoseconds seen = 0ns;
    nanoseconds asked = 1ns;
  };

  void hold(const Made& made) {
    Hold& hold = ledger_.new_hold();
    hold.worker = made.worker;
    hold.token = made.token;
    hold.asked = made.asked.count();
    hold.seen = made.seen.count();
    hold.end = made.end.count();
    hold.begin = made.begin.count();
  }
  void kill(std::uint32_t worker, nanoseconds sent) { kills_.push_back({worker, sent}); }
  Findings find(const std::vector<Pause>& pauses = {}) const {
    return check(ledger_, kills_, pauses, 50ms);
  }

  Ledger ledger_{std::size_t{100}};
  std::vector<Kill> kills_;
};

TEST_F(Checks, OrderlyRunIsFine) {
  hold({1, 10, 1ms, 2ms});
  hold({2, 11, 2ms, 3ms});
  hold({3, 14, 4ms, 0ms, 5ms});
  kill(3, 6ms);
  hold({1, 15, 7ms, 8ms});
  const Findings found = find();
  EXPECT_EQ(found.grants, 4u);
  EXPECT_EQ(found.holders_killed, 1u);
  EXPECT_EQ(found.details, std::vector<std::string>{});
  EXPECT_DOUBLE_EQ(found.after_holder.at(0.5), 1.0);
}

TEST_F(Checks, KilledHoldLastsUntilTheKillWasSent) {
  hold({1, 10, 1ms, 0ms, 1ms});
  hold({2, 11, 4ms, 6ms});
  kill(1, 5ms);
  EXPECT_EQ(find().overlaps, 1u);
}

TEST_F(Checks, KilledHoldLastsAsLongAsItsHolderWasSeenToRun) {
  hold({1, 10, 1ms, 0ms, 7ms});
  hold({2, 11, 6ms, 8ms});
  kill(1, 5ms);
  EXPECT_EQ(find().overlaps, 1u);
}

TEST_F(Checks, HoldWithoutEndNeedsAKill) {
  hold({1, 10, 1ms, 0ms, 2ms});
  EXPECT_EQ(find().unended, 1u);
}

TEST_F(Checks, HoldWhoseRecordWasNotFinishedDoesNotCount) {
  hold({1, 10, 0ms, 0ms});
  EXPECT_EQ(find().grants, 0u);
}

TEST_F(Checks, TokensMustGrow) {
  hold({1, 11, 1ms, 2ms});
  hold({2, 10, 2ms, 3ms});
  hold({3, 10, 3ms, 4ms});
  EXPECT_EQ(find().inversions, 2u);
}

TEST_F(Checks, WhoWasSeenWaitingComesBeforeThoseWhoAskedLater) {
  ledger_.add_sighting({.token = 12, .at = 5'000'000});
  hold({1, 10, 6ms, 7ms, 6ms, 4ms});
  hold({2, 11, 7ms, 8ms, 7ms, 6ms});
  hold({3, 12, 8ms, 9ms, 8ms, 3ms});
  const Findings found = find();
  EXPECT_EQ(found.sighted, 1u);
  EXPECT_EQ(found.overtaken, 1u);
}

TEST_F(Checks, GrantMustFollowAKillInTime) {
  hold({1, 10, 1ms, 0ms, 2ms});
  kill(1, 2ms);
  hold({2, 11, 53ms, 54ms});
  kill(2, 60ms);  // no grant follows it
  EXPECT_EQ(find().slow, 2u);
}

TEST_F(Checks, PausesOfTheMachineAreForgivenAndNoMore) {
  hold({1, 10, 1ms, 0ms, 2ms});
  kill(1, 2ms);
  hold({2, 11, 63ms, 64ms});
  EXPECT_EQ(find({{0ms, 5ms}, {60ms, 70ms}}).slow, 1u) << "61 ms, 3 + 3 of them forgiven";
  EXPECT_EQ(find({{0ms, 5ms}, {30ms, 40ms}}).slow, 0u) << "61 ms, 3 + 10 of them forgiven";
}

}  // namespace
}  // namespace baton::chaos
