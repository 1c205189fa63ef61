// Processes of a job that outlive `baton run`, because baton and its guardian were killed or
// because the job left them running. The tests check which of them keep the lock.
#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "support/fixture.h"

namespace baton::cli::test {
namespace {

class Orphans : public CliTest {
 protected:
  // Stops both before it kills one of them, so that neither sees the end of the other. Kills the
  // guardian first: if baton died first, the guardian would be an orphan, and the kernel would
  // continue it.
  static void kill_both(BatonProcess& run) {
    const auto guardian = children_of(run.pid());
    ASSERT_EQ(guardian.size(), 1U);
    for (const pid_t pid : {run.pid(), guardian[0]}) {
      kill(pid, SIGSTOP);
      ASSERT_TRUE(eventually([&] { return is_stopped(pid); }));
    }
    kill(guardian[0], SIGKILL);
    ASSERT_TRUE(eventually([&] { return !is_running(guardian[0]); }));
    kill(run.pid(), SIGKILL);
    EXPECT_EQ(run.wait(), -SIGKILL);
  }

  int try_once(const std::string& lock) const {
    BatonProcess process(run_sh(lock, "true", {"-n"}));
    return process.wait();
  }
};

TEST_F(Orphans, OfAKilledRunKeepTheLockWhileTheyWork) {
  BatonProcess first(run_sh("x", "sleep 1000 >/dev/null 2>&1 & echo $$ $!; wait"));
  const auto job = pids(first.line());
  ASSERT_EQ(job.size(), 2U);
  kill_both(first);
  EXPECT_TRUE(eventually([&] { return !is_running(job[0]); })) << "the kernel ends CMD itself";
  EXPECT_TRUE(is_running(job[1])) << "nothing can end its children: this is what is left";
  EXPECT_EQ(try_once("x"), 75) << "a child of the job works on, and the lock is free";

  BatonProcess second(run_sh("x", "echo in"));
  ASSERT_TRUE(queue_gets("x", 2));
  EXPECT_FALSE(second.has_ended());
  EXPECT_EQ(second.out(), "");
  kill(job[1], SIGKILL);
  EXPECT_EQ(second.wait(), 0) << second.err();
  EXPECT_EQ(second.out(), "in\n");
}

TEST_F(Orphans, ThatWereLeftOnPurposeKeepNoLock) {
  BatonProcess process(run_sh("x", "sleep 1000 >/dev/null 2>&1 & echo $!"));
  const pid_t left = std::stoi(process.line());
  EXPECT_EQ(process.wait(), 0);
  EXPECT_TRUE(is_running(left));
  EXPECT_EQ(try_once("x"), 0);
  kill(left, SIGKILL);
}

// A service that the job has started is not part of the job: the guardian ends only the process
// group.
TEST_F(Orphans, ThatLeftTheGroupKeepNoLockWhenTheGuardianHasEndedTheRest) {
  const std::string file = directory() + "/service";
  BatonProcess first(run_sh("x", "setsid sh -c 'echo $$ >" + file + ".new; mv " + file + ".new " +
                                     file + "; exec sleep 1000' >/dev/null 2>&1 & echo $$; wait"));
  const auto job = pids(first.line());
  ASSERT_EQ(job.size(), 1U);
  pid_t service = 0;
  ASSERT_TRUE(eventually([&] { return static_cast<bool>(std::ifstream(file) >> service); }));
  BatonProcess second(checker(job));
  ASSERT_TRUE(queue_gets("x", 2));
  first.signal(SIGKILL);
  expect_checked(second);
  EXPECT_TRUE(is_running(service));
  kill(service, SIGKILL);
}

}  // namespace
}  // namespace baton::cli::test
