// Processes are killed while they hold or wait. The next waiter is granted the lock, and no entry
// of a killed process is left.
#include "conformance/fixture.h"
#include "history/holds.h"
#include "support/child.h"
#include "support/temp_dir.h"

#include <signal.h>

#include <memory>
#include <random>
#include <thread>

namespace baton::conformance {
namespace {

using test::Child;

TEST_P(Crashes, KilledHolderFreesTheLock) {
  BATON_NEEDS(Can::cross_processes);
  auto client = open();
  Child holder({"hold", rig().url(), "a", "doomed"});
  const auto held = holder.line_with("held");
  ASSERT_TRUE(held);
  auto waiting = later(client.mutex("a"));
  ASSERT_TRUE(in_line("a", 2));
  const Stopwatch watch;
  holder.kill_hard();
  ASSERT_TRUE(ready(waiting));
  // The lock is free within the session timeout, or at once on stores without a lease.
  const auto timeout = client.session().timeout;
  EXPECT_LE(watch.elapsed(), (timeout == milliseconds::max() ? 0ms : timeout) + 3s + kSlack);
  auto lock = waiting.get();
  EXPECT_TRUE(lock.valid());
  EXPECT_GT(lock.token(), test::number_in(*held, 2));
  EXPECT_TRUE(in_line("a", 1));
}

TEST_P(Crashes, KilledHolderWithoutWaitersLeavesAFreeLock) {
  BATON_NEEDS(Can::cross_processes);
  auto client = open();
  Child holder({"hold", rig().url(), "a"});
  ASSERT_TRUE(holder.line_with("held"));
  holder.kill_hard();
  EXPECT_TRUE(soon("the lock to be free", [&] { return client.mutex("a").try_lock(); }));
  client.mutex("a").unlock();
}

TEST_P(Crashes, KilledWaiterIsSkipped) {
  BATON_NEEDS(Can::cross_processes);
  auto client = open();
  auto other = open();
  auto lock = client.mutex("a").acquire(patient());
  Child waiter({"wait", rig().url(), "a", "60000"});
  ASSERT_TRUE(in_line("a", 2));
  auto behind = later(other.mutex("a"));
  ASSERT_TRUE(in_line("a", 3));
  waiter.kill_hard();
  EXPECT_EQ(behind.wait_for(50ms), std::future_status::timeout) << "granted while held";
  lock.verify();
  lock.release();
  ASSERT_TRUE(ready(behind));
  EXPECT_TRUE(behind.get().valid());
}

TEST_P(Crashes, WholeLineKilledAtOnce) {
  BATON_NEEDS(Can::cross_processes);
  auto client = open();
  std::vector<std::unique_ptr<Child>> line;
  for (std::size_t i = 0; i < 6; ++i) {
    line.push_back(
        std::make_unique<Child>(std::vector<std::string>{"hold", rig().url(), "a", "doomed"}));
    ASSERT_TRUE(in_line("a", i + 1));
  }
  auto waiting = later(client.mutex("a"));
  ASSERT_TRUE(in_line("a", 7));
  for (auto& child : line) child->signal(SIGKILL);
  for (auto& child : line) child->kill_hard();
  ASSERT_TRUE(ready(waiting));
  EXPECT_TRUE(waiting.get().valid());
  EXPECT_TRUE(in_line("a", 0));
}

TEST_P(Crashes, ExitWithoutUnlockFreesTheLock) {
  BATON_NEEDS(Can::cross_processes);
  auto client = open();
  Child leaver({"leave", rig().url(), "a"});
  ASSERT_TRUE(leaver.line_with("held"));
  EXPECT_EQ(leaver.exit_code(), 0);
  EXPECT_TRUE(client.mutex("a").acquire(patient()).valid());
}

TEST_P(Crashes, KillsAtRandomNeverBreakExclusion) {
  BATON_NEEDS(Can::cross_processes);
  const test::TempDir directory;
  const int kills = rig().rounds(scaled(40));
  std::mt19937 random(11);
  const auto start = [&] {
    return std::make_unique<Child>(
        std::vector<std::string>{"loop", rig().url(), "a", "1000000", directory / "counter"});
  };
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < 3; ++i) children.push_back(start());
  for (int i = 0; i < kills; ++i) {
    auto& victim = children[random() % children.size()];
    ASSERT_TRUE(victim->line_with("started")) << "no progress after " << i << " kills";
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));  // random moment
    victim->kill_hard();
    victim = start();
  }
  for (auto& child : children) child->kill_hard();
  // Each process records a hold before it releases it. So a hold without a record was not released
  // by its process.
  const auto holds = history::read(directory / "counter.holds");
  EXPECT_TRUE(exclusive_and_ordered(holds)) << holds.size() << " holds";
  auto client = open();
  EXPECT_TRUE(client.mutex("a").acquire(patient()).valid());
}

}  // namespace
}  // namespace baton::conformance
