// The two deadlines of the contract, with exact numbers.
#include "common/seam/lease.h"

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

// A heartbeat that is answered after 10 ms.
void beat(HeartbeatLease& lease, milliseconds sent, bool write) {
  lease.answered(at(sent), write, at(sent + 10ms));
}

TEST(HeartbeatLeaseDeadline, NothingIsProvenBeforeBothKindsWereAnswered) {
  HeartbeatLease none(8'000ms, at(kT0));
  EXPECT_LE(none.deadline(), at(0ms));
  HeartbeatLease reads(8'000ms, at(kT0));
  beat(reads, kT0, false);
  beat(reads, kT0 + 1'000ms, false);
  EXPECT_LE(reads.deadline(), at(0ms));
}

TEST(HeartbeatLeaseDeadline, FollowsTheFormulaOfTheContract) {
  // T = 8 s: h = 1 s. min(hb + 6 s - g, write + 8 s) - 80 ms - 20 ms
  HeartbeatLease lease(8'000ms, at(kT0));
  beat(lease, kT0, true);
  EXPECT_EQ(lease.deadline(), at(kT0 + 6'000ms - 1'000ms - 100ms));
  beat(lease, kT0 + 1'000ms, false);
  EXPECT_EQ(lease.deadline(), at(kT0 + 1'000ms + 5'000ms - 100ms));
  beat(lease, kT0 + 2'000ms, true);
  EXPECT_EQ(lease.deadline(), at(kT0 + 2'000ms + 5'000ms - 100ms));
}

TEST(HeartbeatLeaseDeadline, IsHalfATAfterTheLastOfARegularRow) {
  // Heartbeats go every second. `touched` is the fourth heartbeat before the last one: the newest
  // whose answer came at least T/4 + 100 ms before the last but one was sent. touched + 8 s is
  // earlier than hb + 5 s.
  HeartbeatLease lease(8'000ms, at(kT0));
  for (int i = 0; i <= 20; ++i) beat(lease, kT0 + i * 1'000ms, i % 2 == 0);
  EXPECT_EQ(lease.deadline(), at(kT0 + 20'000ms - 4'000ms + 8'000ms - 100ms));
}

TEST(HeartbeatLeaseDeadline, AGapMakesItShorter) {
  HeartbeatLease lease(8'000ms, at(kT0));
  beat(lease, kT0, true);
  beat(lease, kT0 + 3'000ms, true);  // g = 3 s
  EXPECT_EQ(lease.deadline(), at(kT0 + 3'000ms + 6'000ms - 3'000ms - 100ms));
}

// A stall between follower and leader: the follower passes heartbeat s0 on, and then nothing. Later
// answers do not prove when the leader last received anything of the session.
TEST(HeartbeatLeaseDeadline, AGapIsNotForgottenWithTheNextHeartbeat) {
  HeartbeatLease lease(8'000ms, at(kT0));
  for (int i = 0; i <= 10; ++i) beat(lease, kT0 + i * 1'000ms, true);
  const auto s0 = kT0 + 10'000ms;
  lease.answered(at(s0 + 1'000ms), true, at(s0 + 5'000ms));  // the answer is delayed
  beat(lease, s0 + 5'010ms, true);
  beat(lease, s0 + 6'010ms, true);  // gap = h again
  EXPECT_LE(lease.deadline(), at(s0 + 1'000ms + 8'000ms - 100ms));
  for (int i = 7; i <= 12; ++i) beat(lease, s0 + i * 1'000ms + 10ms, true);
  EXPECT_GT(lease.deadline(), at(s0 + 14'000ms)) << "it recovers";
}

// Pings come a little more than half a tick apart. With T = 2 ticks the rule without a margin would
// require only half a tick between the answer to a and p (lease.h explains a and p). In this test
// the leader counts from 0.3 ms.
TEST(HeartbeatLeaseDeadline, PingsThatComeALittleLateAreReckonedWith) {
  using std::chrono::microseconds;
  HeartbeatLease lease(4'000ms, at(kT0 - 500ms));
  const auto answered = [&](microseconds sent, microseconds came) {
    lease.answered(at(kT0) + sent, true, at(kT0) + came);
  };
  answered(-500'000us, -499'600us);
  answered(0us, 519'900us);
  answered(520'000us, 520'400us);
  answered(1'020'000us, 1'020'400us);
  answered(1'521'000us, 1'521'400us);
  answered(2'020'000us, 2'500'000us);
  EXPECT_LE(lease.deadline(), at(kT0 + 4'000ms));
}

TEST(HeartbeatLeaseDeadline, BeatsOfTheOldConnectionProveNothingAboutTheNewOne) {
  HeartbeatLease lease(8'000ms, at(kT0));
  for (int i = 0; i <= 10; ++i) beat(lease, kT0 + i * 1'000ms, true);
  lease.reconnected(at(kT0));  // touched is the last heartbeat: kT0 + 10 s
  const auto start = kT0 + 13'000ms;
  beat(lease, start, true);
  beat(lease, start + 1'000ms, true);
  EXPECT_EQ(lease.deadline(), at(kT0 + 10'000ms + 8'000ms - 100ms));
}

TEST(HeartbeatLeaseDeadline, AConnectionProvesThatTheLeaderHeardOfUs) {
  HeartbeatLease lease(8'000ms, at(kT0));
  for (int i = 0; i <= 10; ++i) beat(lease, kT0 + i * 1'000ms, true);
  lease.reconnected(at(kT0 + 15'000ms));
  beat(lease, kT0 + 15'100ms, true);
  beat(lease, kT0 + 16'100ms, true);
  EXPECT_EQ(lease.deadline(), at(kT0 + 16'100ms + 5'000ms - 100ms));
}

// Heartbeats without writes do not keep the lease: a server that is cut off answers them, too.
TEST(HeartbeatLeaseDeadline, WithoutWritesItEndsOneTAfterTheLastWrite) {
  HeartbeatLease lease(8'000ms, at(kT0));
  beat(lease, kT0, true);
  for (int i = 1; i <= 20; ++i) beat(lease, kT0 + i * 1'000ms, false);
  EXPECT_EQ(lease.deadline(), at(kT0 + 8'000ms - 100ms));
}

TEST(HeartbeatLeaseDeadline, LateAndDoubleAnswersChangeNothing) {
  HeartbeatLease lease(8'000ms, at(kT0));
  beat(lease, kT0, true);
  beat(lease, kT0 + 1'000ms, true);
  const auto before = lease.deadline();
  beat(lease, kT0 + 500ms, true);
  beat(lease, kT0 + 500ms, false);
  beat(lease, kT0 + 1'000ms, true);
  EXPECT_EQ(lease.deadline(), before);
}

TEST(HeartbeatLeaseDeadline, IsAlwaysBeforeTheServerMayForget) {
  for (const auto t : {1'000ms, 4'000ms, 10'000ms, 40'000ms, 86'400'000ms}) {
    HeartbeatLease lease(t, at(kT0));
    beat(lease, kT0, true);
    beat(lease, kT0 + HeartbeatLease::interval(t), true);
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
