// baton on a terminal. A command of `baton run` must behave as it does without baton.
#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <deque>

#include "support/fixture.h"
#include "support/pty_shell.h"

namespace baton::cli::test {
namespace {

constexpr char kCtrlC[] = "\x03";
constexpr char kCtrlZ[] = "\x1a";

class OnATerminal : public CliTest {};

TEST_F(OnATerminal, TheCommandCanReadFromIt) {
  PtyShell shell(run_sh("x", "echo ready; read a; echo \"read <$a>\""));
  ASSERT_TRUE(shell.shows("ready"));
  shell.type("hello\n");
  EXPECT_TRUE(shell.shows("read <hello>")) << shell.screen();
  EXPECT_EQ(shell.event(), "exit 0");
}

TEST_F(OnATerminal, CtrlCReachesTheCommandOnce) {
  PtyShell shell(run_sh("x",
                        "n=0; trap 'n=$((n+1)); echo int $n' INT; echo ready; "
                        "while read a; do echo \"read <$a>\"; done; exit 5"));
  ASSERT_TRUE(shell.shows("ready"));
  shell.type(kCtrlC);
  ASSERT_TRUE(shell.shows("int 1")) << shell.screen();
  shell.type("\x04");
  EXPECT_EQ(shell.event(), "exit 5") << shell.screen();
  EXPECT_EQ(shell.screen().find("int 2"), std::string::npos) << shell.screen();
}

TEST_F(OnATerminal, CtrlCEndsACommandThatDoesNotCare) {
  PtyShell shell(run_sh("x", "echo ready; exec sleep 1000"));
  ASSERT_TRUE(shell.shows("ready"));
  shell.type(kCtrlC);
  EXPECT_EQ(shell.event(), "exit 130") << shell.screen();
  EXPECT_TRUE(show("x")["entries"].empty());
}

TEST_F(OnATerminal, CtrlCEndsTheWait) {
  BatonProcess holder(run_sh("x", "echo up; read line"), with_input());
  ASSERT_EQ(holder.line(), "up");
  PtyShell shell(run_sh("x", "echo never"));
  ASSERT_TRUE(queue_gets("x", 2));
  shell.type(kCtrlC);
  EXPECT_EQ(shell.event(), "exit 130") << shell.screen();
}

TEST_F(OnATerminal, CtrlZStopsBothAndFgContinuesBoth) {
  PtyShell shell(run_sh("x", "echo ready; read a; echo \"read <$a>\"; read b; echo \"and <$b>\""));
  ASSERT_TRUE(shell.shows("ready"));
  shell.type("one\n");
  ASSERT_TRUE(shell.shows("read <one>"));
  shell.type(kCtrlZ);
  ASSERT_EQ(shell.event(), "stopped") << shell.screen();
  EXPECT_EQ(show("x")["entries"].size(), 1U) << "a stopped job keeps its lock";
  shell.foreground();
  ASSERT_TRUE(eventually([&] { return shell.foreground_group() != shell.baton(); }));
  shell.type("two\n");
  EXPECT_TRUE(shell.shows("and <two>")) << shell.screen();
  EXPECT_EQ(shell.event(), "exit 0");
}

TEST_F(OnATerminal, AJobInTheBackgroundStopsWhenItReadsAndContinuesInTheForeground) {
  PtyShell shell(run_sh("x", "echo ready; read a; echo \"read <$a>\""));
  ASSERT_TRUE(shell.shows("ready"));
  shell.type(kCtrlZ);
  ASSERT_EQ(shell.event(), "stopped");
  shell.background();
  ASSERT_EQ(shell.event(), "stopped") << "it reads without having the terminal";
  shell.foreground();
  shell.type("hello\n");
  EXPECT_TRUE(shell.shows("read <hello>")) << shell.screen();
  EXPECT_EQ(shell.event(), "exit 0");
}

TEST_F(OnATerminal, ACommandInAPipelineGetsItWhenItAsks) {
  // In a pipeline baton gives the terminal to the command only when the command uses it: another
  // program of the pipeline, such as less, may need it too.
  PtyShell shell({"--url", url(), "run", "outer", "--", "sh", "-c",
                  baton_binary() + " --url " + url() +
                      " run x -- sh -c 'echo ready; read a; echo \"read <$a>\"' | cat"});
  ASSERT_TRUE(shell.shows("ready")) << shell.screen();
  shell.type("hello\n");
  EXPECT_TRUE(shell.shows("read <hello>")) << shell.screen();
  EXPECT_EQ(shell.event(), "exit 0");
}

TEST_F(OnATerminal, CtrlCInAPipelineReachesTheCommand) {
  PtyShell shell({"--url", url(), "run", "outer", "--", "sh", "-c",
                  "trap : INT; " + baton_binary() + " --url " + url() +
                      " run x -- sh -c 'echo ready; exec sleep 1000' | cat; echo over"});
  ASSERT_TRUE(shell.shows("ready")) << shell.screen();
  shell.type(kCtrlC);
  EXPECT_TRUE(shell.shows("over")) << shell.screen();
  EXPECT_EQ(shell.event(), "exit 0") << shell.screen();
}

TEST_F(OnATerminal, CtrlZIsUndoneWhereNobodyCouldContinue) {
  // As in a container: baton is the session leader, so no shell can continue its process group.
  PtyShell shell(run_sh("x", "echo ready; read a; echo \"read <$a>\""), PtyShell::kNoShell);
  ASSERT_TRUE(shell.shows("ready")) << shell.screen();
  shell.type(kCtrlZ);
  ASSERT_TRUE(shell.shows("^Z")) << shell.screen();
  shell.type("hello\n");
  EXPECT_TRUE(shell.shows("read <hello>")) << shell.screen();
}

TEST_F(OnATerminal, KillingBatonEndsTheJobAndFreesTheLockAfter) {
  PtyShell shell(
      run_sh("x", "trap '' TERM HUP; echo ready; while :; do read a; done", {"--grace", "300ms"}));
  ASSERT_TRUE(shell.shows("ready")) << shell.screen();
  kill(shell.baton(), SIGKILL);
  EXPECT_EQ(shell.event(), "signal 9");
  EXPECT_TRUE(queue_gets("x", 0));
}

TEST_F(OnATerminal, ItIsSaneAfterAJobThatWasKilledInRawMode) {
  PtyShell shell(run_sh("x", "stty -echo raw; echo ready; kill -KILL $$"));
  ASSERT_TRUE(shell.shows("ready"));
  EXPECT_EQ(shell.event(), "exit 137");
  shell.type("typed");
  EXPECT_TRUE(shell.shows("typed")) << "echo is on again: " << shell.screen();
}

TEST_F(OnATerminal, OneThatIsFrozenDoesNotKeepALostJobAlive) {
  PtyShell shell(run_sh("x", "echo job $$; exec sleep 1000"));
  ASSERT_TRUE(shell.shows("job ")) << shell.screen();
  shell.freeze();
  BatonProcess evict(on_store({"evict", "--yes", "x", show("x")["entries"][0]["id"]}));
  EXPECT_EQ(evict.wait(), 0) << evict.err();
  EXPECT_EQ(shell.event(), "exit 76") << shell.screen();
}

TEST_F(OnATerminal, EvictAsksAndTakesNoForAnAnswer) {
  BatonProcess holder(run_sh("x", "echo up; read line", {"--label", "holder-label"}), with_input());
  ASSERT_EQ(holder.line(), "up");
  const std::string id = show("x")["entries"][0]["id"];
  {
    PtyShell no(on_store({"evict", "x", id}));
    ASSERT_TRUE(no.shows("holder-label")) << no.screen();
    ASSERT_TRUE(no.shows("[y/N]")) << no.screen();
    no.type("\n");
    EXPECT_EQ(no.event(), "exit 1");
  }
  EXPECT_EQ(show("x")["entries"].size(), 1U);
  PtyShell yes(on_store({"evict", "x", id}));
  ASSERT_TRUE(yes.shows("[y/N]"));
  yes.type("y\n");
  EXPECT_EQ(yes.event(), "exit 0") << yes.screen();
  EXPECT_EQ(holder.wait(), 76) << holder.err();
}

TEST_F(OnATerminal, WatchRedrawsAndEndsWellOnCtrlC) {
  PtyShell shell(on_store({"watch", "x"}));
  ASSERT_TRUE(shell.shows("x is free")) << shell.screen();
  BatonProcess holder(run_sh("x", "echo up; read line", {"--label", "bob"}), with_input());
  EXPECT_TRUE(shell.shows("bob")) << shell.screen();
  shell.type(kCtrlC);
  EXPECT_EQ(shell.event(), "exit 0");
}

TEST_F(OnATerminal, WatchDoesNotScrollWhenThereIsNoRoomForAll) {
  constexpr std::size_t kRows = 8;
  BatonProcess holder(run_sh("x", "echo up; read line", {"--label", "bob"}), with_input());
  ASSERT_EQ(holder.line(), "up");
  std::deque<BatonProcess> waiters;
  while (waiters.size() < kRows) waiters.emplace_back(run_sh("x", "echo never"));
  ASSERT_TRUE(queue_gets("x", 1 + kRows));

  PtyShell shell(on_store({"watch", "x"}), PtyShell::kNoShell, kRows);
  const std::string home = "\x1b[H";
  for (int frame = 0; frame < 3; ++frame) ASSERT_TRUE(shell.shows(home)) << shell.screen();
  const std::string& screen = shell.screen();
  std::size_t begin = screen.find(home);
  for (int frame = 0; frame < 2; ++frame) {
    const std::size_t end = screen.find(home, begin + 1);
    ASSERT_NE(end, std::string::npos);
    const std::string text = screen.substr(begin, end - begin);
    EXPECT_NE(text.find("held, 8 waiting"), std::string::npos) << text;
    EXPECT_NE(text.find("bob"), std::string::npos) << text;
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 7) << text;
    begin = end;
  }
}

}  // namespace
}  // namespace baton::cli::test
