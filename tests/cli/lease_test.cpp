// run on a store with a lease: in this process, on a store of virtual time that can be cut off.
#include <baton/baton.h>
#include <baton/testing.h>

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
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

  // Runs the test in a child: run blocks signals and becomes a subreaper.
  template <class F>
  int in_child(F&& body) {
    const pid_t child = fork();
    if (child == 0) _exit(body());
    int status = 0;
    const bool ended = eventually([&] { return waitpid(child, &status, WNOHANG) == child; });
    if (!ended) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  bool exists(const std::string& file) const {
    return std::filesystem::exists(directory() + "/" + file);
  }
};

TEST_F(Lease, ACutOffStoreEndsTheJobBeforeTheDeadline) {
  const int code = in_child([&] {
    testing::MemoryStore store("cli-lease");
    int result = -1;
    std::thread run([&] {
      result =
          run_command(args("trap 'touch term; exit 0' TERM; touch up; "
                           "while :; do sleep 0.05; done"));
    });
    if (!eventually([&] { return exists("up"); })) return 98;
    store.disconnect();
    // Less than the grace of 2.5 s is left, and no word comes.
    for (int step = 0; step < 100 && !exists("term"); ++step) {
      store.advance(std::chrono::milliseconds(100));
      eventually([&] { return exists("term"); }, std::chrono::milliseconds(50));
    }
    store.reconnect();
    store.advance(std::chrono::milliseconds(5'000));
    run.join();
    return result;
  });
  EXPECT_EQ(code, 76);
  EXPECT_TRUE(exists("term"));
}

TEST_F(Lease, AnEndedSessionEndsTheJob) {
  const int code = in_child([&] {
    testing::MemoryStore store("cli-lease");
    int result = -1;
    std::thread run([&] {
      result =
          run_command(args("trap 'touch term; exit 0' TERM; touch up; "
                           "while :; do sleep 0.05; done"));
    });
    if (!eventually([&] { return exists("up"); })) return 98;
    store.expire_sessions();
    run.join();
    return result;
  });
  EXPECT_EQ(code, 76);
  EXPECT_TRUE(exists("term"));
}

// The guardian stands still (SIGSTOP, a debugger, swap): baton itself keeps the promise. The lock's
// time stands still too as soon as TERM was seen, so that CMD is gone before the deadline or never.
TEST_F(Lease, AStoppedGuardianDoesNotKeepTheJobPastTheDeadline) {
  const int code = in_child([&] {
    testing::MemoryStore store("cli-lease");
    int result = -1;
    std::thread run([&] {
      result =
          run_command(args("trap 'touch term' TERM; echo $$ >pid; touch up; "
                           "while :; do sleep 0.05; done"));
    });
    if (!eventually([&] { return exists("up"); })) _exit(98);
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
    run.join();
    return result;
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
