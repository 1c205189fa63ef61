// `baton run`: a command runs while baton holds the lock. The tests check the exit code for each
// way in which the run can end.
#include <gtest/gtest.h>

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "support/fixture.h"

namespace baton::cli::test {
namespace {

class Run : public CliTest {};

TEST_F(Run, PassesTheExitCodeOfTheCommandOn) {
  for (const int code : {0, 1, 42, 255}) {
    BatonProcess process(run_sh("x", "exit " + std::to_string(code)));
    EXPECT_EQ(process.wait(), code) << process.err();
    EXPECT_EQ(process.err(), "");
  }
}

TEST_F(Run, TellsTheCommandItsLockAndToken) {
  BatonProcess process(run_sh("jobs/nightly", "echo $BATON_LOCK; echo $BATON_TOKEN"));
  EXPECT_EQ(process.line(), "jobs/nightly");
  const std::string token = process.line();
  EXPECT_GT(std::stoull(token), 0U) << token;
  EXPECT_EQ(process.wait(), 0);
}

TEST_F(Run, SecondRunWaitsAndGetsALargerToken) {
  BatonProcess first(run_sh("x", "echo $BATON_TOKEN; read line", {"--label", "first"}),
                     with_input());
  const auto first_token = std::stoull(first.line());
  BatonProcess second(run_sh("x", "echo $BATON_TOKEN", {"--label", "second"}));
  ASSERT_TRUE(queue_gets("x", 2));

  const auto entries = show("x")["entries"];
  EXPECT_EQ(entries[0]["label"], "first");
  EXPECT_EQ(entries[0]["token"], first_token);
  EXPECT_EQ(entries[1]["label"], "second");
  EXPECT_FALSE(second.has_ended());

  first.close_input();
  EXPECT_GT(std::stoull(second.line()), first_token);
  EXPECT_EQ(second.wait(), 0) << second.err();
  first.wait();
  EXPECT_TRUE(show("x")["entries"].empty());
}

TEST_F(Run, TimeoutEndsWith75AndLeavesNoEntry) {
  BatonProcess holder(run_sh("x", "echo up; read line"), with_input());
  ASSERT_EQ(holder.line(), "up");
  const auto begin = std::chrono::steady_clock::now();
  BatonProcess late(run_sh("x", "echo never", {"--timeout", "1s"}));
  EXPECT_EQ(late.wait(), 75);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
  EXPECT_EQ(late.out(), "");
  EXPECT_EQ(late.err().rfind("baton: ", 0), 0U) << late.err();
  EXPECT_EQ(show("x")["entries"].size(), 1U);
}

TEST_F(Run, TryOnceDoesNotWait) {
  BatonProcess holder(run_sh("x", "echo up; read line"), with_input());
  ASSERT_EQ(holder.line(), "up");
  BatonProcess once(run_sh("x", "echo never", {"-n"}));
  EXPECT_EQ(once.wait(), 75);
  BatonProcess other(run_sh("y", "echo done", {"-n"}));
  EXPECT_EQ(other.wait(), 0) << other.err();
  EXPECT_EQ(other.out(), "done\n");
}

TEST_F(Run, NestedRunOfTheSameLockIsRefused) {
  const std::string nested = baton_binary() + " --url " + url() + "/./ run x -- echo never";
  BatonProcess process(run_sh("x", nested + "; echo code $?"));
  EXPECT_EQ(process.wait(), 0);
  EXPECT_EQ(process.out(), "code 64\n");
  EXPECT_NE(process.err().find("nested"), std::string::npos) << process.err();
}

TEST_F(Run, NestedRunsOfDifferentLocksAreFine) {
  const std::string inner = baton_binary() + " --url " + url() + " run z -- true";
  const std::string middle = baton_binary() + " --url " + url() + " run y -- " + inner;
  BatonProcess process(run_sh("x", middle));
  EXPECT_EQ(process.wait(), 0) << process.err();
}

TEST_F(Run, AProcessLeftBehindMayTakeTheLockAgain) {
  // The background process outlives the outer run and its lock, so its BATON_HELD is out of date.
  BatonProcess process(on_store({"run", "x", "--", "sh", "-c",
                                 "exec 3<&0; (read line <&3; " + baton_binary() + " --url " +
                                     url() + " run x -- echo again) & exit 0"}),
                       with_input());
  EXPECT_EQ(process.wait(), 0) << process.err();
  process.write("go\n");
  EXPECT_EQ(process.line(), "again");
}

TEST_F(Run, StdinPassesThrough) {
  BatonProcess process(on_store({"run", "x", "--", "cat"}), with_input());
  process.write("hello\n");
  EXPECT_EQ(process.line(), "hello");
  process.close_input();
  EXPECT_EQ(process.wait(), 0);
}

TEST_F(Run, MissingCommandIs127) {
  BatonProcess process(on_store({"run", "x", "--", "/nowhere/at/all"}));
  EXPECT_EQ(process.wait(), 127);
  EXPECT_NE(process.err().find("/nowhere/at/all"), std::string::npos);
  BatonProcess by_path(on_store({"run", "x", "--", "no-such-program-here"}));
  EXPECT_EQ(by_path.wait(), 127);
  EXPECT_TRUE(show("x")["entries"].empty());
}

TEST_F(Run, CommandThatCannotBeExecutedIs126) {
  const std::string file = directory() + "/plain";
  std::ofstream(file) << "text";
  chmod(file.c_str(), 0644);
  BatonProcess process(on_store({"run", "x", "--", file}));
  EXPECT_EQ(process.wait(), 126);
  EXPECT_NE(process.err().find("Permission denied"), std::string::npos) << process.err();
  EXPECT_TRUE(show("x")["entries"].empty());
}

TEST_F(Run, CommandThatDiesOfASignalIs128AndMore) {
  BatonProcess killed(run_sh("x", "kill -KILL $$"));
  EXPECT_EQ(killed.wait(), 128 + SIGKILL);
  BatonProcess segv(run_sh("x", "kill -SEGV $$"));
  EXPECT_EQ(segv.wait(), 128 + SIGSEGV);
}

TEST_F(Run, UnreachableStoreIs69) {
  BatonProcess missing(
      {"--url", "file://" + directory() + "/no/such/parent", "run", "x", "--", "echo", "never"});
  EXPECT_EQ(missing.wait(), 69) << missing.err();
  EXPECT_EQ(missing.out(), "");
  EXPECT_EQ(missing.err().rfind("baton: ", 0), 0U) << missing.err();
}

TEST_F(Run, ADirectoryOfSomebodyElseIs77) {
  ASSERT_EQ(mkdir((directory() + "/store").c_str(), 0700), 0);
  if (geteuid() == 0) {
    chmod(directory().c_str(), 0755);
  } else {
    chmod((directory() + "/store").c_str(), 0);
  }
  BatonProcess process(run_sh("x", "echo never"), {{}, {}, true, 65'534});
  const int code = process.wait();
  if (code == 99) GTEST_SKIP() << "that user cannot run the binary where it is";
  EXPECT_EQ(code, 77) << process.err();
  EXPECT_EQ(process.out(), "");
}

TEST_F(Run, BackgroundChildrenAreLeftAlone) {
  BatonProcess process(run_sh("x", "sleep 1000 >/dev/null 2>&1 & echo $!"));
  const pid_t left = std::stoi(process.line());
  EXPECT_EQ(process.wait(), 0);
  EXPECT_TRUE(show("x")["entries"].empty());
  EXPECT_TRUE(is_running(left));
  kill(left, SIGKILL);
}

TEST_F(Run, NothingOfBatonLeaksIntoTheCommand) {
  BatonProcess process(run_sh("x",
                              "ls /proc/self/fd | sort -n | tr '\\n' ' '; echo; grep Sig "
                              "/proc/self/status | grep -E 'Blk|Ign'"));
  EXPECT_EQ(process.line(), "0 1 2 3 100 ")
      << "3 is the directory that ls reads, 100 keeps the lock";
  // The command must have the signal settings of this test. For example, under nohup HUP must stay
  // ignored.
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("SigBlk") && !line.starts_with("SigIgn")) continue;
    // Only signals 1 to 31: the C library uses some of the higher ones itself.
    const auto standard = [](const std::string& text) {
      return std::stoull(text.substr(text.find('\t') + 1), nullptr, 16) & 0x7fffffff;
    };
    EXPECT_EQ(standard(process.line()), standard(line)) << line;
  }
  EXPECT_EQ(process.wait(), 0);
}

}  // namespace
}  // namespace baton::cli::test
