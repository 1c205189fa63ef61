// EndPlan: when baton and its guardian send TERM and KILL to a command.
#include "ending.h"

#include <gtest/gtest.h>

namespace baton::cli::test {
namespace {

using namespace std::chrono_literals;

const BootClock::time_point kNow{1'000s};

EndPlan plan_with(std::chrono::milliseconds grace) {
  EndPlan plan;
  plan.set_grace(grace);
  return plan;
}

TEST(EndPlanOf, AStoreWithoutALeaseHasNoDeadline) {
  EndPlan plan = plan_with(2s);
  EXPECT_EQ(plan.term_at(), BootClock::time_point::max());
  plan.begin(kNow);
  EXPECT_EQ(plan.kill_at(), kNow + 2s);
  plan.begin(kNow + 1s);
  EXPECT_EQ(plan.kill_at(), kNow + 2s) << "a second call changes nothing";
}

TEST(EndPlanOf, ALeaseSendsTermOneGraceBeforeTheDeadlineAndKillBeforeIt) {
  for (const auto grace : {250ms, 500ms, 2'500ms}) {
    EndPlan plan = plan_with(grace);
    plan.renew(kNow + 5s);
    plan.renew(kNow + 10s);
    EXPECT_EQ(plan.term_at(), kNow + 10s - grace);
    plan.begin(plan.term_at());
    EXPECT_LT(plan.kill_at(), kNow + 10s);
    EXPECT_GT(plan.own_term_at(), plan.term_at());
    EXPECT_LT(plan.own_term_at(), plan.kill_at()) << "TERM comes first, from either of the two";
  }
}

TEST(EndPlanOf, AnEndThatHasBegunIsBroughtForwardAndNeverPutOff) {
  EndPlan plan = plan_with(2s);
  plan.renew(kNow + 10s);
  plan.begin(kNow);
  EXPECT_EQ(plan.kill_at(), kNow + 2s);
  plan.renew(kNow + 1s);
  const auto earlier = plan.kill_at();
  EXPECT_LT(earlier, kNow + 1s);
  plan.renew(kNow + 20s);
  EXPECT_EQ(plan.kill_at(), earlier);
}

TEST(EndPlanOf, ADeadlineThatHasPassedKillsAtOnce) {
  EndPlan plan = plan_with(2s);
  plan.renew(kNow - 1s);
  plan.begin(kNow);
  EXPECT_LT(plan.kill_at(), kNow);
}

TEST(Grace, LeavesTimeForKillAndForTwoHeartbeats) {
  using std::chrono::milliseconds;
  EXPECT_EQ(choose_grace(std::nullopt, 10s), 2'500ms);
  EXPECT_EQ(choose_grace(0ms, 10s), 500ms);
  EXPECT_EQ(choose_grace(1h, 9s), 3s);
  EXPECT_EQ(choose_grace(std::nullopt, milliseconds::max()), 5s);
  EXPECT_EQ(choose_grace(0ms, milliseconds::max()), 0ms);
  EXPECT_EQ(choose_grace(1000h, milliseconds::max()), 24h);
}

}  // namespace
}  // namespace baton::cli::test
