// The state behind a Lock: a loss is final, and so is a release.
#include "common/client/hold.h"
#include "common/seam/lock_name.h"

#include <gtest/gtest.h>

#include <memory>

namespace baton::internal {
namespace {

using namespace std::chrono_literals;

struct HandClock final : Clock {
  Time now() const noexcept override { return time; }
  bool real() const noexcept override { return false; }
  Time time{1s};
};

struct HandSign final : TicketSign {
  bool evicted() const noexcept override { return gone; }
  bool gone = false;
};

class HoldTest : public ::testing::Test {
 protected:
  HandClock clock;
  std::shared_ptr<LeaseView> lease = std::make_shared<LeaseView>(Time(5s), Time(10s));
  std::shared_ptr<HandSign> sign = std::make_shared<HandSign>();
  Hold hold{{parse_lock_name("job").value(), Nonce{1}, 7, &clock, lease, sign, {}, Time(1s)}};
};

TEST_F(HoldTest, IsValidUntilTheDeadlineAndNotAtIt) {
  EXPECT_EQ(hold.state(), LockState::held);
  clock.time = Time(10s) - Nanos(1);
  EXPECT_TRUE(hold.valid());
  EXPECT_EQ(hold.state(), LockState::suspect);
  clock.time = Time(10s);
  EXPECT_FALSE(hold.valid());
  EXPECT_EQ(hold.state(), LockState::lost);
  EXPECT_EQ(hold.valid_for(), 0ms);
}

TEST_F(HoldTest, ALeaseThatIsExtendedLateDoesNotReviveIt) {
  clock.time = Time(10s);
  EXPECT_FALSE(hold.valid());
  lease->extend(Time(15s), Time(20s));
  EXPECT_FALSE(hold.valid());
  EXPECT_EQ(hold.state(), LockState::lost);
  EXPECT_EQ(hold.lost_reason(), make_error_code(Errc::session_expired));
}

TEST_F(HoldTest, ALeaseThatIsExtendedInTimeKeepsIt) {
  clock.time = Time(9s);
  lease->extend(Time(15s), Time(20s));
  clock.time = Time(14s);
  EXPECT_EQ(hold.state(), LockState::held);
}

TEST_F(HoldTest, TheFirstReasonOfALossStays) {
  clock.time = Time(10s);
  EXPECT_FALSE(hold.valid());
  sign->gone = true;
  EXPECT_EQ(hold.due_loss(), Errc::session_expired);
}

TEST_F(HoldTest, AnEvictedTicketEndsIt) {
  sign->gone = true;
  EXPECT_FALSE(hold.valid());
  EXPECT_EQ(hold.due_loss(), Errc::evicted);
}

TEST_F(HoldTest, IsLostOrReleasedButNotBoth) {
  EXPECT_TRUE(hold.become_released());
  EXPECT_FALSE(hold.become_lost(Errc::evicted));
  EXPECT_FALSE(hold.become_released());
  EXPECT_FALSE(hold.valid());
  EXPECT_EQ(hold.state(), LockState::released);
}

}  // namespace
}  // namespace baton::internal
