#include "chaos/process.h"

#include "support/boot_clock.h"

#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <thread>

extern char** environ;

namespace baton::chaos {
namespace {

int decode(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace

pid_t start_self(const std::vector<std::string>& arguments) {
  std::vector<std::string> words{std::filesystem::read_symlink("/proc/self/exe").string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  words.push_back(std::to_string(::getpid()));
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int failed = ::posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ);
  if (failed != 0) throw std::system_error(failed, std::generic_category(), "posix_spawn");
  return pid;
}

void end_with_parent(const std::string& parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (std::to_string(::getppid()) != parent) ::_exit(1);  // the parent ended before prctl()
}

std::optional<int> wait_for_end(pid_t pid, std::chrono::milliseconds limit) {
  const test::Stopwatch watch;
  do {
    int status = 0;
    if (::waitpid(pid, &status, WNOHANG) == pid) return decode(status);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (watch.elapsed() < limit);
  return std::nullopt;
}

int kill_and_reap(pid_t pid) {
  ::kill(pid, SIGKILL);
  int status = 0;
  ::waitpid(pid, &status, 0);
  return decode(status);
}

std::vector<std::string> leftovers(const std::string& directory) {
  namespace fs = std::filesystem;
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    const std::string name = fs::relative(entry.path(), directory).string();
    if (!entry.is_directory() && !name.starts_with("tokens.")) found.push_back(name);
  }
  return found;
}

}  // namespace baton::chaos
