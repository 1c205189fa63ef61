// A store of its own for every test.
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

  // A command line on this test's store.
  std::vector<std::string> on_store(std::vector<std::string> args) const;
  std::vector<std::string> run_sh(const std::string& lock, const std::string& script,
                                  std::vector<std::string> options = {}) const;

  // The lock as `show --json` prints it.
  nlohmann::json show(const std::string& lock) const;
  // Waits until the queue of the lock has this many entries.
  bool queue_gets(const std::string& lock, std::size_t entries) const;

  // Pids that a job printed on one line.
  static std::vector<pid_t> pids(const std::string& line);
  // A run whose command says "alive" for each of these that exists in any form when it has the
  // lock, and "checked" at the end.
  std::vector<std::string> checker(const std::vector<pid_t>& pids) const;
  // It found none of them.
  static void expect_checked(BatonProcess& process);

  // Runs this in a child process, since run blocks signals and becomes a subreaper: what it
  // returned. -1: it did not end.
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
