// Helpers of the examples: arguments, a scratch directory, starting more processes. Nothing here is
// about locks, and your program needs none of it.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace example {

// The value of a flag ("--url X" or "--url=X"), or the fallback.
inline std::string option(int argc, char** argv, std::string_view flag, std::string fallback = {}) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == flag && i + 1 < argc) return argv[i + 1];
    if (argument.size() > flag.size() && argument.substr(0, flag.size()) == flag &&
        argument[flag.size()] == '=') {
      return std::string(argument.substr(flag.size() + 1));
    }
  }
  return fallback;
}

inline bool has(int argc, char** argv, std::string_view flag) {
  for (int i = 1; i < argc; ++i) {
    if (argv[i] == flag) return true;
  }
  return false;
}

// A directory for this run, removed at its end.
class Scratch {
 public:
  Scratch() {
    std::string pattern = std::filesystem::temp_directory_path() / "baton-example-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The URL of the store: --url, else BATON_URL, else a directory of this run.
inline std::string store_url(int argc, char** argv, const Scratch& scratch) {
  if (auto url = option(argc, argv, "--url"); !url.empty()) return url;
  if (const char* url = std::getenv("BATON_URL"); url != nullptr && *url != '\0') return url;
  return "file://" + scratch.path() + "/store";
}

// For examples that start processes: memory: exists only inside one process.
inline void require_shared(const std::string& url) {
  if (url.rfind("memory:", 0) == 0) {
    throw std::runtime_error(
        "this example runs several processes, and memory: works only inside one process; use "
        "another --url");
  }
}

// Starts this program again, with other arguments. Not a plain fork(): a client cannot be used in a
// forked child, so every process opens its own client.
inline pid_t spawn(std::vector<std::string> arguments) {
  std::vector<char*> argv{const_cast<char*>("/proc/self/exe")};
  for (auto& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  if (posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, argv.data(), environ) != 0) {
    throw std::runtime_error("cannot start another process");
  }
  return pid;
}

// Waits for the process. Returns whether it ended with exit code 0.
inline bool succeeded(pid_t pid) {
  int status = 0;
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Waits until the condition is true. Throws after ten seconds.
template <class Condition>
void wait_until(Condition condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit)
      throw std::runtime_error("waited 10 s for a condition that did not become true");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// The kernel ends a process that runs longer than this, so no example hangs. With end_with_parent
// the process also ends when its parent ends, even while it is stopped.
inline void limit_seconds(unsigned seconds, bool end_with_parent) {
  alarm(seconds);
  if (end_with_parent) prctl(PR_SET_PDEATHSIG, SIGKILL);
}

}  // namespace example
