// What happens to the command when baton or its guardian is killed or stopped.
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "guardian.h"
#include "process_group.h"
#include "support/fixture.h"

namespace baton::cli::test {
namespace {

class GuardianOfRun : public CliTest {};

TEST_F(GuardianOfRun, KilledBatonEndsTheJobBeforeTheLockIsFree) {
  BatonProcess first(run_sh("x", "echo $$; exec sleep 1000"));
  const auto job = pids(first.line());
  ASSERT_EQ(job.size(), 1U);
  BatonProcess second(checker(job));
  ASSERT_TRUE(queue_gets("x", 2));
  first.signal(SIGKILL);
  EXPECT_EQ(first.wait(), -SIGKILL);
  expect_checked(second);
}

TEST_F(GuardianOfRun, AJobThatIgnoresTermIsKilledFirst) {
  BatonProcess first(
      run_sh("x", "trap '' TERM; echo $$; while :; do sleep 0.1; done", {"--grace", "500ms"}));
  const auto job = pids(first.line());
  ASSERT_EQ(job.size(), 1U);
  BatonProcess second(checker(job));
  ASSERT_TRUE(queue_gets("x", 2));
  const auto begin = std::chrono::steady_clock::now();
  first.signal(SIGKILL);
  expect_checked(second);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(500));
}

TEST_F(GuardianOfRun, BackgroundGrandchildrenAreEndedToo) {
  // Some children are orphaned, some are not, and one ignores TERM. The leader ends at TERM.
  BatonProcess first(
      run_sh("x",
             "cd " + directory() +
                 "; (sleep 1000 & echo $! >>pids); (trap '' TERM; exec sleep 1000) & "
                 "echo $! >>pids; sh -c 'sleep 1000 & echo $! >>pids; wait' & "
                 "echo $! >>pids; while [ $(wc -l <pids) -lt 4 ]; do sleep 0.01; done; "
                 "echo $$ $(cat pids); rm pids; wait",
             {"--grace", "300ms"}));
  const auto job = pids(first.line());
  ASSERT_EQ(job.size(), 5U);
  BatonProcess second(checker(job));
  ASSERT_TRUE(queue_gets("x", 2));
  first.signal(SIGKILL);
  expect_checked(second);
}

TEST_F(GuardianOfRun, AStoppedJobIsEndedToo) {
  BatonProcess first(run_sh("x", "echo $$; kill -STOP $$; sleep 1000"));
  const auto job = pids(first.line());
  ASSERT_EQ(job.size(), 1U);
  BatonProcess second(checker(job));
  ASSERT_TRUE(queue_gets("x", 2));
  first.signal(SIGKILL);
  expect_checked(second);
}

TEST_F(GuardianOfRun, KilledWhileWaitingLeavesNothingBehind) {
  BatonProcess holder(run_sh("x", "echo up; read line"), with_input());
  ASSERT_EQ(holder.line(), "up");
  BatonProcess waiter(run_sh("x", "echo never"));
  ASSERT_TRUE(queue_gets("x", 2));
  const auto guardian = children_of(waiter.pid());
  ASSERT_EQ(guardian.size(), 1U);
  waiter.signal(SIGKILL);
  EXPECT_TRUE(queue_gets("x", 1));
  EXPECT_TRUE(eventually([&] { return !is_running(guardian[0]); }));
}

TEST_F(GuardianOfRun, ItsOwnDeathEndsTheJobAndFreesTheLockAfter) {
  BatonProcess first(run_sh("x", "sleep 1000 & echo $$ $!; wait", {"--grace", "500ms"}));
  const auto job = pids(first.line());
  ASSERT_EQ(job.size(), 2U);
  const auto guardian = children_of(first.pid());
  ASSERT_EQ(guardian.size(), 1U);
  BatonProcess second(checker(job));
  ASSERT_TRUE(queue_gets("x", 2));
  kill(guardian[0], SIGKILL);
  EXPECT_EQ(first.wait(), 76) << first.err();
  EXPECT_NE(first.err().find("guardian"), std::string::npos) << first.err();
  expect_checked(second);
}

TEST_F(GuardianOfRun, SignalsDoNotReachIt) {
  BatonProcess process(run_sh("x", "echo up; read line; exit 4"), with_input());
  ASSERT_EQ(process.line(), "up");
  const auto guardian = children_of(process.pid());
  ASSERT_EQ(guardian.size(), 1U);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGPIPE, SIGALRM}) {
    kill(guardian[0], number);
  }
  process.close_input();
  EXPECT_EQ(process.wait(), 4) << process.err();
}

TEST_F(GuardianOfRun, AStoppedGuardianDoesNotKeepALostJobAlive) {
  BatonProcess holder(
      run_sh("x", "trap '' TERM; echo $$; while :; do sleep 0.05; done", {"--grace", "200ms"}));
  const auto job = pids(holder.line());
  ASSERT_EQ(job.size(), 1U);
  const auto guardian = children_of(holder.pid());
  ASSERT_EQ(guardian.size(), 1U);
  kill(guardian[0], SIGSTOP);
  BatonProcess evict(on_store({"evict", "--yes", "x", show("x")["entries"][0]["id"]}));
  EXPECT_EQ(evict.wait(), 0) << evict.err();
  EXPECT_EQ(holder.wait(), 76) << holder.err();
  EXPECT_FALSE(is_running(job[0]));
  EXPECT_FALSE(is_running(guardian[0]));
}

// The guardian without the rest of baton. The test sends it deadlines, as on a store with a lease.
class GuardianAlone : public CliTest {
 protected:
  void start(const std::string& script, std::chrono::milliseconds grace) {
    spec_ = {{"sh", "-c", script}, "x", "store"};
    guardian_.emplace(start_guardian(spec_, signals_, terminal_));
    guardian_->link.send({Note::start, static_cast<std::int32_t>(grace.count()), 7});
    group_ = expect(Note::started);
  }

  void send_deadline(BootClock::time_point deadline) {
    guardian_->link.send({Note::deadline, 0, deadline.time_since_epoch().count()});
  }

  // Waits for the next message of this kind and returns its number. -1: it did not come.
  int expect(Note note) {
    Message message;
    const bool got = eventually([&] {
      return guardian_->link.receive(message) == Link::Got::message && message.note == note;
    });
    return got ? message.number : -1;
  }

  void TearDown() override {
    if (guardian_) {
      guardian_->dismiss();
    }
    CliTest::TearDown();
  }

  const SignalState signals_ = SignalState::save();
  const Terminal terminal_;
  JobSpec spec_;
  std::optional<Guardian> guardian_;
  pid_t group_ = -1;
};

TEST_F(GuardianAlone, ADeadlineThatIsNotRenewedEndsTheJobBeforeIt) {
  start("trap '' TERM; while :; do sleep 0.05; done", std::chrono::milliseconds(1'000));
  ASSERT_GT(group_, 0);
  const auto deadline = BootClock::now() + std::chrono::seconds(2);
  send_deadline(deadline);
  guardian_->link.send({Note::go, 0, 0});
  EXPECT_EQ(expect(Note::ending), 0);
  EXPECT_GE(BootClock::now(), deadline - std::chrono::seconds(1));
  EXPECT_EQ(expect(Note::gone), 0);
  EXPECT_LT(BootClock::now(), deadline) << "KILL comes before the deadline, not at it";
  EXPECT_EQ(has_living_member(group_), Living::no);
}

TEST_F(GuardianAlone, ARenewedDeadlineEndsNothing) {
  start("exec sleep 1000", std::chrono::milliseconds(500));
  ASSERT_GT(group_, 0);
  send_deadline(BootClock::now() + std::chrono::milliseconds(900));
  guardian_->link.send({Note::go, 0, 0});
  const auto end = BootClock::now() + std::chrono::milliseconds(1'500);
  EXPECT_TRUE(eventually([&] {
    send_deadline(BootClock::now() + std::chrono::seconds(60));
    return BootClock::now() >= end;
  }));
  EXPECT_EQ(has_living_member(group_), Living::yes);
  kill(-group_, SIGUSR1);
  EXPECT_EQ(expect(Note::killed), SIGUSR1);
}

TEST_F(GuardianAlone, ItsDeathBeforeTheWordEndsTheCommandUnrun) {
  start("echo never", std::chrono::milliseconds(100));
  ASSERT_GT(group_, 0);
  kill(guardian_->pid(), SIGKILL);
  guardian_->bury();
  EXPECT_TRUE(eventually([&] { return has_living_member(group_) == Living::no; }));
  guardian_.reset();
}

}  // namespace
}  // namespace baton::cli::test
