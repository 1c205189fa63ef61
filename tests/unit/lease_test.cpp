// The two deadlines of the contract, by the number.
#include "common/lease.h"

#include <gtest/gtest.h>

#include <chrono>

namespace baton::internal {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

Time at(milliseconds t) { return Time(std::chrono::duration_cast<Nanos>(t)); }
constexpr milliseconds kT0 = 1'000'000ms;

TEST(LeaseDeadline, IsSendTimePlus99PercentMinus20Ms) {
  EXPECT_EQ(lease_deadline(at(kT0), 10'000ms), at(kT0 + 9'880ms));
  EXPECT_EQ(lease_deadline(at(kT0), 1'000ms), at(kT0 + 970ms));
  EXPECT_EQ(lease_deadline(at(kT0), 86'400'000ms), at(kT0 + 85'536'000ms - 20ms));
}

TEST(LeaseDeadline, OfNothingLiesInThePast) {
  EXPECT_LT(lease_deadline(at(kT0), 0ms), at(kT0));
  EXPECT_LT(lease_deadline(at(kT0), -1ms), at(kT0));
}

// A server may answer any number; now + ttl must not wrap into the past or trap.
TEST(LeaseDeadline, HugeTtlDoesNotOverflow) {
  EXPECT_GT(lease_deadline(at(kT0), milliseconds::max()), at(kT0));
  EXPECT_GT(lease_deadline(at(kT0), milliseconds(std::int64_t{1} << 53)), at(kT0));
}

TEST(HeartbeatLeaseDeadline, IntervalIsAnEighth) {
  EXPECT_EQ(HeartbeatLease::interval(10'000ms), 1'250ms);
  EXPECT_EQ(HeartbeatLease::interval(4'000ms), 500ms);
}

TEST(HeartbeatLeaseDeadline, NothingIsProvenBeforeBothKindsWereAnswered) {
  HeartbeatLease none(8'000ms);
  EXPECT_LE(none.deadline(), at(0ms));
  HeartbeatLease reads(8'000ms);
  reads.answered(at(kT0), false);
  reads.answered(at(kT0 + 1'000ms), false);
  EXPECT_LE(reads.deadline(), at(0ms));
}

TEST(HeartbeatLeaseDeadline, FollowsTheFormula) {
  // T = 8 s: h = 1 s. min(hb + 6 s - g, write + 8 s) - 80 ms - 20 ms
  HeartbeatLease lease(8'000ms);
  lease.answered(at(kT0), true);
  EXPECT_EQ(lease.deadline(), at(kT0 + 6'000ms - 1'000ms - 100ms));
  lease.answered(at(kT0 + 1'000ms), false);
  EXPECT_EQ(lease.deadline(), at(kT0 + 1'000ms + 5'000ms - 100ms));
  lease.answered(at(kT0 + 2'000ms), true);
  EXPECT_EQ(lease.deadline(), at(kT0 + 2'000ms + 5'000ms - 100ms));
}

TEST(HeartbeatLeaseDeadline, AGapMakesItShorter) {
  HeartbeatLease lease(8'000ms);
  lease.answered(at(kT0), true);
  lease.answered(at(kT0 + 3'000ms), true);  // g = 3 s
  EXPECT_EQ(lease.deadline(), at(kT0 + 3'000ms + 6'000ms - 3'000ms - 100ms));
  lease.answered(at(kT0 + 4'000ms), true);  // g = h again
  EXPECT_EQ(lease.deadline(), at(kT0 + 4'000ms + 5'000ms - 100ms));
}

// Heartbeats alone do not keep it: a cut-off server answers those too.
TEST(HeartbeatLeaseDeadline, WithoutWritesItEndsOneTAfterTheLastWrite) {
  HeartbeatLease lease(8'000ms);
  lease.answered(at(kT0), true);
  for (int i = 1; i <= 20; ++i) lease.answered(at(kT0 + i * 1'000ms), false);
  EXPECT_EQ(lease.deadline(), at(kT0 + 8'000ms - 100ms));
}

TEST(HeartbeatLeaseDeadline, LateAndDoubleAnswersChangeNothing) {
  HeartbeatLease lease(8'000ms);
  lease.answered(at(kT0), true);
  lease.answered(at(kT0 + 1'000ms), true);
  const auto before = lease.deadline();
  lease.answered(at(kT0 + 500ms), true);
  lease.answered(at(kT0 + 500ms), false);
  lease.answered(at(kT0 + 1'000ms), true);
  EXPECT_EQ(lease.deadline(), before);
}

TEST(HeartbeatLeaseDeadline, IsAlwaysBeforeTheServerMayForget) {
  for (const auto t : {1'000ms, 4'000ms, 10'000ms, 40'000ms, 86'400'000ms}) {
    HeartbeatLease lease(t);
    lease.answered(at(kT0), true);
    lease.answered(at(kT0 + HeartbeatLease::interval(t)), true);
    EXPECT_LT(lease.deadline(), at(kT0 + HeartbeatLease::interval(t) + t));
    EXPECT_GT(lease.deadline(), at(kT0 + HeartbeatLease::interval(t)));
  }
}

TEST(SaturatingTime, StopsAtNever) {
  EXPECT_EQ(saturating_add(at(kT0), Nanos::max()), kNever);
  EXPECT_EQ(saturating_add_ms(at(kT0), milliseconds::max()), kNever);
  EXPECT_EQ(saturating_add(kNever, 1ns), kNever);
  EXPECT_EQ(saturating_add_ms(kNever, 0ms), kNever);
  EXPECT_EQ(saturating_add(at(kT0), 5ms), at(kT0 + 5ms));
  EXPECT_EQ(saturating_add_ms(at(kT0), 5ms), at(kT0 + 5ms));
  EXPECT_EQ(saturating_add(at(kT0), -5ms), at(kT0 - 5ms));
  EXPECT_LT(saturating_add(at(kT0), 1h), kNever);
}

}  // namespace
}  // namespace baton::internal
