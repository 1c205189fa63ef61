// Signals to `baton run`, while it waits for the lock and while its command runs.
#include <gtest/gtest.h>

#include <signal.h>

#include "support/fixture.h"

namespace baton::cli::test {
namespace {

class Signals : public CliTest {};

// A job that prints which of these signals it gets, and then exits with 9.
std::string reporter(const std::string& signals) {
  std::string script;
  for (const char* name : {"INT", "TERM", "HUP", "QUIT", "USR1", "USR2", "WINCH"}) {
    if (signals.find(name) == std::string::npos) continue;
    script += std::string("trap 'echo got ") + name + "; seen=1' " + name + "; ";
  }
  return script + "echo up; while [ -z \"$seen\" ]; do sleep 0.05; done; exit 9";
}

TEST_F(Signals, ArePassedOnToTheCommand) {
  const std::pair<int, const char*> all[] = {
      {SIGINT, "INT"},   {SIGTERM, "TERM"}, {SIGHUP, "HUP"},    {SIGQUIT, "QUIT"},
      {SIGUSR1, "USR1"}, {SIGUSR2, "USR2"}, {SIGWINCH, "WINCH"}};
  for (const auto& [number, name] : all) {
    BatonProcess process(run_sh("x", reporter(name)));
    ASSERT_EQ(process.line(), "up") << process.err();
    process.signal(number);
    EXPECT_EQ(process.line(), std::string("got ") + name);
    EXPECT_EQ(process.wait(), 9) << "the command decides what a signal means";
  }
}

TEST_F(Signals, ReachTheWholeGroupOfTheCommand) {
  BatonProcess process(run_sh("x", "sh -c 'echo inner $$; exec sleep 1000' & wait"));
  const std::string line = process.line();
  ASSERT_EQ(line.rfind("inner ", 0), 0U);
  const pid_t inner = std::stoi(line.substr(6));
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait(), 128 + SIGTERM);
  EXPECT_TRUE(eventually([&] { return !is_running(inner); }));
}

TEST_F(Signals, EndTheWaitAndLeaveNoEntry) {
  BatonProcess holder(run_sh("x", "echo up; read line"), with_input());
  ASSERT_EQ(holder.line(), "up");
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    BatonProcess waiter(run_sh("x", "echo never"));
    ASSERT_TRUE(queue_gets("x", 2));
    waiter.signal(number);
    EXPECT_EQ(waiter.wait(), 128 + number) << waiter.err();
    EXPECT_EQ(waiter.out(), "");
    EXPECT_EQ(show("x")["entries"].size(), 1U);
  }
}

TEST_F(Signals, ThatWereIgnoredStayIgnored) {
  BatonProcess process(run_sh("x", "echo up; read line; exit 3"), {{}, {SIGHUP}, false, 0});
  ASSERT_EQ(process.line(), "up");
  process.signal(SIGHUP);
  process.signal(SIGWINCH);
  process.close_input();
  EXPECT_EQ(process.wait(), 3);
}

TEST_F(Signals, IgnoredChildSignalsDoNotHideTheExitCode) {
  BatonProcess process(run_sh("x", "exit 5"), {{}, {SIGCHLD, SIGPIPE}, true, 0});
  EXPECT_EQ(process.wait(), 5);
}

}  // namespace
}  // namespace baton::cli::test
