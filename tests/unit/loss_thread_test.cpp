// Losses are declared in time however many stop callbacks block. They are announced in time while
// fewer than 256 block.
#include <baton/baton.h>
#include <baton/testing.h>

#include "common/client/hold.h"
#include "common/client/loss_duties.h"
#include "common/seam/lock_name.h"
#include "common/client/loss_thread.h"
#include "support/eventually.h"
#include "support/log_capture.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <latch>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace baton {
namespace {

using test::eventually;
using test::kLong;
using namespace std::chrono_literals;

using Callback = std::stop_callback<std::function<void()>>;

TEST(LossThread, AHundredBlockedStopCallbacksDelayNoOtherLoss) {
  testing::MemoryStore store("loss1");
  auto client = Client::connect("memory:loss1");
  constexpr int kBlocked = 100;
  std::vector<Lock> locks;
  for (int i = 0; i <= kBlocked; ++i) {
    locks.push_back(client.mutex("l" + std::to_string(i)).acquire());
  }
  std::latch go(1);
  std::atomic<int> blocked{0};
  std::vector<std::unique_ptr<Callback>> callbacks;
  for (int i = 0; i < kBlocked; ++i) {
    callbacks.push_back(
        std::make_unique<Callback>(locks[static_cast<std::size_t>(i)].lost_token(), [&] {
          ++blocked;
          go.wait();
        }));
  }
  store.expire_sessions();
  // The order of announcements is not fixed, so the test waits for all 101.
  EXPECT_TRUE(eventually(
      "the announcement of every loss",
      [&] { return blocked == kBlocked && locks.back().lost_token().stop_requested(); }, 1s));
  go.count_down();
  callbacks.clear();
}

std::shared_ptr<internal::Hold> make_hold(const std::shared_ptr<internal::LeaseView>& lease,
                                          std::uint64_t number) {
  using namespace internal;
  return std::make_shared<Hold>(Hold::Parts{parse_lock_name("x").value(),
                                            Nonce{number},
                                            number,
                                            &real_clock(),
                                            lease,
                                            nullptr,
                                            {},
                                            BootClock::now()});
}

// More callbacks block than the limit allows, which the log reports. Deadlines, withdrawals and
// nudges continue.
TEST(LossThread, DeadlinesWithdrawalsAndNudgesDoNotDependOnStopCallbacks) {
  using namespace internal;
  constexpr int kHolds = 300;
  const test::LogCapture log;
  std::latch go(1);
  std::atomic<int> withdrawn{0};
  std::atomic<int> nudges{0};
  std::atomic<int> blocked{0};
  std::vector<std::shared_ptr<Hold>> holds;
  std::vector<std::unique_ptr<Callback>> callbacks;
  LossThread loss(
      real_clock(), log.sink(), [&](const std::shared_ptr<Hold>&) { ++withdrawn; },
      [&] { ++nudges; });
  const Time deadline = BootClock::now() + 50ms;
  const auto lease = std::make_shared<LeaseView>(deadline, deadline);
  for (int i = 0; i < kHolds; ++i) {
    holds.push_back(make_hold(lease, static_cast<std::uint64_t>(i) + 1));
    callbacks.push_back(std::make_unique<Callback>(holds.back()->lost_token(), [&] {
      ++blocked;
      go.wait();
    }));
    loss.watch(holds.back());
  }
  EXPECT_TRUE(eventually("all withdrawals", [&] { return withdrawn == kHolds; }));
  EXPECT_TRUE(eventually("the limit", [&] { return blocked == 256; }));
  EXPECT_TRUE(eventually("the line in the log",
                         [&] { return log.count(LogLevel::error, "the limit is reached") == 1; }));
  // A later deadline is also handled in time.
  const Time later = BootClock::now() + 50ms;
  const auto hold = make_hold(std::make_shared<LeaseView>(later, later), 1000);
  loss.watch(hold);
  EXPECT_TRUE(eventually("one more withdrawal", [&] { return withdrawn == kHolds + 1; }));
  const int before = nudges;
  EXPECT_TRUE(eventually("nudges", [&] { return nudges >= before + 3; }));
  EXPECT_EQ(blocked, 256);
  go.count_down();
  EXPECT_TRUE(eventually("all announcements",
                         [&] { return blocked == kHolds && hold->lost_token().stop_requested(); }));
  loss.stop(std::chrono::milliseconds(kLong));
  callbacks.clear();
}

// Legal changes are those in this list, and watching -> telling in the phase `running`.
TEST(LossThread, DutiesChangeOnlyAsTheTableSays) {
  using internal::LossPhase;
  using D = internal::LossDuty;
  const std::set<std::pair<D, D>> always{{D::none, D::watching},
                                         {D::watching, D::announcing},
                                         {D::announcing, D::watching},
                                         {D::telling, D::watching},
                                         {D::watching, D::none}};
  constexpr std::array kAll{D::none, D::watching, D::telling, D::announcing};
  for (const D from : kAll) {
    for (const D to : kAll) {
      const bool legal = always.contains({from, to});
      const bool tells = from == D::watching && to == D::telling;
      EXPECT_EQ(may_change(LossPhase::running, from, to), legal || tells);
      EXPECT_EQ(may_change(LossPhase::stopping, from, to), legal) << "the client may be gone";
    }
  }
}

TEST(LossThread, DutiesAreCounted) {
  using internal::LossPhase;
  using D = internal::LossDuty;
  internal::LossDuties duties;
  duties.change(LossPhase::running, D::none, D::watching);
  duties.change(LossPhase::running, D::none, D::watching);
  duties.change(LossPhase::running, D::watching, D::announcing);
  EXPECT_EQ(duties.threads(), 2);
  EXPECT_EQ(duties.unblocked(), 1);
  duties.change(LossPhase::running, D::watching, D::telling);
  EXPECT_EQ(duties.unblocked(), 1);
  duties.change(LossPhase::stopping, D::telling, D::watching);
  duties.change(LossPhase::stopping, D::watching, D::none);
  EXPECT_EQ(duties.unblocked(), 0);
  EXPECT_EQ(duties.of(D::announcing), 1);
  EXPECT_EQ(duties.threads(), 1);
}

}  // namespace
}  // namespace baton
