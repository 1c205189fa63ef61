// CliTest: the fixture of the tests that run baton. Every test has its own file store.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "support/baton_process.h"

namespace baton::cli::test {

class CliTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // Adds the URL of this test's store to a command line. run_sh: the command line of a run that
  // executes a shell script.
  std::vector<std::string> on_store(std::vector<std::string> args) const;
  std::vector<std::string> run_sh(const std::string& lock, const std::string& script,
                                  std::vector<std::string> options = {}) const;

  // The state of the lock, as `show --json` prints it.
  nlohmann::json show(const std::string& lock) const;
  // Waits until the queue of the lock has this many entries.
  bool queue_gets(const std::string& lock, std::size_t entries) const;

  // The pids in a line that a job has printed.
  static std::vector<pid_t> pids(const std::string& line);
  // The command line of a run that checks these processes after it has the lock. Its script prints
  // "alive" for each process that exists, also as a zombie, and "checked" at the end.
  std::vector<std::string> checker(const std::vector<pid_t>& pids) const;
  // Expects that the checker found none of the processes.
  static void expect_checked(BatonProcess& process);

  // Runs `body` in a child process, because run_command() blocks signals and becomes a subreaper.
  // Returns what `body` returns, -n if signal n killed the child, and -1 if it did not end in time.
  template <class F>
  static int in_child(F&& body) {
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

  const std::string& directory() const { return directory_; }
  std::string url() const { return "file://" + directory_ + "/store"; }

 private:
  std::string directory_;
};

}  // namespace baton::cli::test
