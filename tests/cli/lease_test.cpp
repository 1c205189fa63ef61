// `baton run` on a store with a lease. The tests call run_command() in a child process, on a store
// with virtual time that can be cut off.
#include <baton/baton.h>
#include <baton/testing.h>

#include <gtest/gtest.h>

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "commands.h"
#include "errors.h"
#include "support/fixture.h"

namespace baton::cli::test {
namespace {

class Lease : public CliTest {
 protected:
  Args args(const std::string& script) const {
    Args out;
    out.command = Command::run;
    out.url = "memory:cli-lease";
    out.name = "x";
    out.job = {"sh", "-c", "cd " + directory() + "; " + script};
    return out;
  }

  // Runs the job on a store with virtual time, in a child process. Calls fault(store) when the job
  // has made the file "up". Returns what run_command() returns.
  template <class F>
  int run_and(const std::string& script, F&& fault) {
    return in_child([&] {
      testing::MemoryStore store("cli-lease");
      int result = -1;
      std::thread run([&] { result = run_command(args(script)); });
      if (!eventually([&] { return exists("up"); })) _exit(98);
      fault(store);
      run.join();
      return result;
    });
  }

  bool exists(const std::string& file) const {
    return std::filesystem::exists(directory() + "/" + file);
  }
};

constexpr const char* kEndsOnTerm =
    "trap 'touch term; exit 0' TERM; touch up; while :; do sleep 0.05; done";

TEST_F(Lease, ACutOffStoreEndsTheJobBeforeTheDeadline) {
  const int code = run_and(kEndsOnTerm, [&](testing::MemoryStore& store) {
    store.disconnect();
    // Advance the time until the job gets TERM. No loss is reported: TERM comes because less than
    // the grace (2.5 s) is left until the deadline.
    for (int step = 0; step < 100 && !exists("term"); ++step) {
      store.advance(std::chrono::milliseconds(100));
      eventually([&] { return exists("term"); }, std::chrono::milliseconds(50));
    }
    store.reconnect();
    store.advance(std::chrono::milliseconds(5'000));
  });
  EXPECT_EQ(code, 76);
  EXPECT_TRUE(exists("term"));
}

TEST_F(Lease, AnEndedSessionEndsTheJob) {
  const int code =
      run_and(kEndsOnTerm, [](testing::MemoryStore& store) { store.expire_sessions(); });
  EXPECT_EQ(code, 76);
  EXPECT_TRUE(exists("term"));
}

// While the guardian does not run (SIGSTOP, a debugger, swap), baton itself must end the job. After
// TERM the test no longer advances the time, so the deadline never comes. The test fails if baton
// does not kill the job before it.
TEST_F(Lease, AStoppedGuardianDoesNotKeepTheJobPastTheDeadline) {
  constexpr const char* kIgnoresTerm =
      "trap 'touch term' TERM; echo $$ >pid; touch up; while :; do sleep 0.05; done";
  const int code = run_and(kIgnoresTerm, [&](testing::MemoryStore& store) {
    pid_t job = 0;
    std::ifstream(directory() + "/pid") >> job;
    const auto guardian = children_of(getpid());
    if (guardian.size() != 1) _exit(97);
    kill(guardian[0], SIGSTOP);
    if (!eventually([&] { return is_stopped(guardian[0]); })) _exit(96);
    store.disconnect();
    for (int step = 0; step < 90 && !exists("term"); ++step) {
      store.advance(std::chrono::milliseconds(100));
      eventually([&] { return exists("term"); }, std::chrono::milliseconds(50));
    }
    if (!exists("term")) _exit(95);
    if (!eventually([&] { return !is_running(job); }, std::chrono::seconds(10))) _exit(94);
    store.reconnect();
    store.advance(std::chrono::milliseconds(5'000));
  });
  EXPECT_EQ(code, 76);
}

TEST_F(Lease, AJobThatEndsInTimeIsNotDisturbed) {
  const int code = in_child([&] {
    testing::MemoryStore store("cli-lease");
    return run_command(args("exit 3"));
  });
  EXPECT_EQ(code, 3);
}

}  // namespace
}  // namespace baton::cli::test
