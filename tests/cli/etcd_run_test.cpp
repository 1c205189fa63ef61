// `baton run` on a real etcd server, in real time.
#include <gtest/gtest.h>

#include <signal.h>

#include <chrono>
#include <string>

#include "clock.h"
#include "support/baton_process.h"
#include "support/etcd_server.h"

namespace baton::cli::test {
namespace {

using std::chrono::seconds;

class EtcdRun : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!::baton::test::etcd_installed()) GTEST_SKIP() << "etcd is not installed";
  }
};

// A paused server does not renew the lease. So the deadline of the lock is at most one session
// timeout after the pause begins.
TEST_F(EtcdRun, AStoppedGuardianDoesNotKeepTheJobPastTheDeadline) {
  ::baton::test::EtcdCluster etcd;
  BatonProcess run({"--url", "etcd://" + etcd.hosts() + "/run-test", "--session-timeout", "4s",
                    "run", "x", "--", "sh", "-c",
                    "trap 'echo term' TERM; echo $$; while :; do sleep 0.05; done"});
  const pid_t job = std::stoi("0" + run.line());
  ASSERT_GT(job, 0) << run.err();
  const auto guardian = children_of(run.pid());
  ASSERT_EQ(guardian.size(), 1U);
  kill(guardian[0], SIGSTOP);
  ASSERT_TRUE(eventually([&] { return is_stopped(guardian[0]); }));

  etcd.pause(0);
  const auto stopped = BootClock::now();
  EXPECT_EQ(run.line(), "term");
  EXPECT_TRUE(eventually([&] { return !is_running(job); }));
  EXPECT_LT(BootClock::now() - stopped, seconds(4));
  etcd.resume(0);
  EXPECT_EQ(run.wait(), 76) << run.err();
  EXPECT_FALSE(is_running(guardian[0]));
}

}  // namespace
}  // namespace baton::cli::test
