// `baton run` with a command whose main thread has ended while another thread still works. /proc
// shows such a process as a zombie, but baton must treat it as alive.
#include <gtest/gtest.h>

#include <signal.h>

#include <chrono>

#include "support/fixture.h"

namespace baton::cli::test {
namespace {

// Long enough to see that baton does not end too early.
constexpr std::chrono::milliseconds kLook{300};

class WithoutMainThread : public CliTest {
 protected:
  std::vector<std::string> run_job(const std::string& grace) const {
    return on_store({"run", "x", "--grace", grace, "--", BATON_THREADED_JOB_PATH});
  }
};

TEST_F(WithoutMainThread, AJobHasItsGraceAfterTheLossOfTheLock) {
  BatonProcess holder(run_job("60s"), with_input());
  ASSERT_NE(holder.line(), "") << holder.err();
  BatonProcess evict(on_store({"evict", "--yes", "x", show("x")["entries"][0]["id"]}));
  EXPECT_EQ(evict.wait(), 0) << evict.err();
  ASSERT_EQ(holder.line(), "got TERM") << holder.err();
  EXPECT_FALSE(eventually([&] { return holder.has_ended(); }, kLook)) << holder.err();
  holder.close_input();
  EXPECT_EQ(holder.line(), "cleaned up") << holder.err();
  EXPECT_EQ(holder.wait(), 76) << holder.err();
}

TEST_F(WithoutMainThread, AJobKeepsTheLockOfAKilledBatonUntilItEnds) {
  BatonProcess first(run_job("60s"), with_input());
  const std::string job = first.line();
  ASSERT_NE(job, "") << first.err();
  BatonProcess second(checker(pids(job)));
  ASSERT_TRUE(queue_gets("x", 2));
  first.signal(SIGKILL);
  ASSERT_EQ(first.line(), "got TERM");
  EXPECT_EQ(show("x")["entries"].size(), 2U);
  EXPECT_FALSE(eventually([&] { return second.has_ended(); }, kLook)) << second.err();
  first.close_input();
  EXPECT_EQ(first.line(), "cleaned up");
  expect_checked(second);
}

TEST_F(WithoutMainThread, AJobThatIgnoresTermIsKilledBeforeTheLockIsFree) {
  BatonProcess first(run_job("300ms"), with_input());
  const std::string job = first.line();
  ASSERT_NE(job, "") << first.err();
  BatonProcess second(checker(pids(job)));
  ASSERT_TRUE(queue_gets("x", 2));
  const auto begin = std::chrono::steady_clock::now();
  first.signal(SIGKILL);
  expect_checked(second);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(300));
}

}  // namespace
}  // namespace baton::cli::test
