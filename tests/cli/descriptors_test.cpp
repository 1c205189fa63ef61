// `baton run` with a stderr that is full or has no reader, and with standard descriptors that are
// closed. This must not keep a job alive, end a job, or change an exit code.
#include <gtest/gtest.h>

#include <signal.h>

#include <cstdio>
#include <fstream>
#include <utility>

#include "support/fixture.h"

namespace baton::cli::test {
namespace {

class Descriptors : public CliTest {
 protected:
  void evict_holder() const {
    BatonProcess evict(on_store({"evict", "--yes", "x", show("x")["entries"][0]["id"]}));
    EXPECT_EQ(evict.wait(), 0) << evict.err();
  }

  void expect_the_usual_exit_codes(Stderr err) const {
    BatonProcess holder(run_sh("x", "echo up; exec sleep 1000"), with_stderr(err));
    ASSERT_EQ(holder.line(), "up");
    BatonProcess late(run_sh("x", "echo never", {"--timeout", "10ms"}), with_stderr(err));
    EXPECT_EQ(late.wait(), 75);
    EXPECT_EQ(late.out(), "");
    evict_holder();
    EXPECT_EQ(holder.wait(), 76);
  }
};

TEST_F(Descriptors, AFullStderrDoesNotKeepALostJobAlive) {
  BatonProcess holder(run_sh("x", "echo $$; exec sleep 1000"), with_stderr(Stderr::full));
  const pid_t job = std::stoi(holder.line());
  evict_holder();
  EXPECT_TRUE(eventually([&] { return !is_running(job); }));
  EXPECT_EQ(holder.wait(), 76);
}

TEST_F(Descriptors, AFullStderrDoesNotKeepTheJobOfAKilledBatonAlive) {
  BatonProcess first(run_sh("x", "echo $$; exec sleep 1000"), with_stderr(Stderr::full));
  const std::string job = first.line();
  BatonProcess second(run_sh("x", "[ -d /proc/" + job + " ] && echo alive; echo checked"));
  ASSERT_TRUE(queue_gets("x", 2));
  first.signal(SIGKILL);
  EXPECT_EQ(second.wait(), 0) << second.err();
  EXPECT_EQ(second.out(), "checked\n");
}

TEST_F(Descriptors, AFullStderrDoesNotKeepTheJobOfAKilledGuardianAlive) {
  BatonProcess process(run_sh("x", "echo $$; exec sleep 1000"), with_stderr(Stderr::full));
  const pid_t job = std::stoi(process.line());
  const auto guardian = children_of(process.pid());
  ASSERT_EQ(guardian.size(), 1U);
  kill(guardian[0], SIGKILL);
  EXPECT_EQ(process.wait(), 76);
  EXPECT_FALSE(is_running(job));
}

TEST_F(Descriptors, AFullStderrChangesNoExitCode) { expect_the_usual_exit_codes(Stderr::full); }

TEST_F(Descriptors, AStderrWhoseReaderIsGoneChangesNoExitCode) {
  expect_the_usual_exit_codes(Stderr::broken);
}

TEST_F(Descriptors, TheCommandHasItsOwnIdeaOfBrokenPipes) {
  BatonProcess as_usual(run_sh("x", "kill -PIPE $$; exit 3"));
  EXPECT_EQ(as_usual.wait(), 128 + SIGPIPE);
  BatonProcess ignored(run_sh("x", "kill -PIPE $$; exit 3"), {{}, {SIGPIPE}, true, 0});
  EXPECT_EQ(ignored.wait(), 3);
}

TEST_F(Descriptors, ThatAreClosedAreClosedForTheCommandToo) {
  const std::pair<std::vector<int>, std::string> all[] = {
      {{0}, "1 2"}, {{1}, "0 2"}, {{2}, "0 1"}, {{0, 1}, "2"}, {{0, 1, 2}, ""}};
  for (const auto& [closed, open] : all) {
    const std::string file = directory() + "/open";
    // The script checks before it redirects anything, because a redirection would open descriptors.
    BatonProcess process(run_sh("x",
                                "open=; for fd in 0 1 2 3 4; do [ -e /proc/$$/fd/$fd ] && "
                                "open=\"$open $fd\"; done; echo $open >" +
                                    file),
                         with_closed(closed));
    EXPECT_EQ(process.wait(), 0) << process.err();
    std::string found = "nothing was run";
    std::getline(std::ifstream(file), found);
    EXPECT_EQ(found, open);
    EXPECT_EQ(process.err(), "");
    std::remove(file.c_str());
  }
  EXPECT_TRUE(show("x")["entries"].empty());
}

TEST_F(Descriptors, ThatAreClosedDoNotHideTheLossOfTheLock) {
  const std::string file = directory() + "/up";
  BatonProcess holder(
      run_sh("x", "echo $$ >" + file + ".new; mv " + file + ".new " + file + "; exec sleep 1000"),
      with_closed({0, 1, 2}));
  pid_t job = 0;
  ASSERT_TRUE(eventually([&] { return static_cast<bool>(std::ifstream(file) >> job); }));
  evict_holder();
  EXPECT_EQ(holder.wait(), 76);
  EXPECT_FALSE(is_running(job));
}

}  // namespace
}  // namespace baton::cli::test
