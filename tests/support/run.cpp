#include "support/run.h"

#include "support/boot_clock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <system_error>

extern char** environ;

namespace baton::test {
namespace {

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  all.reserve(words.size() + 1);
  for (auto& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

// Puts `variables` first, because the first of two variables with one name counts.
std::vector<std::string> with_ours(std::vector<std::string> variables) {
  for (char** each = environ; *each != nullptr; ++each) variables.emplace_back(*each);
  return variables;
}

pid_t spawn(std::vector<std::string>& words, std::vector<std::string> variables, int out, int err) {
  variables = with_ours(std::move(variables));
  const auto argv = pointers(words);
  const auto envp = pointers(variables);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out, 1);
  ::posix_spawn_file_actions_adddup2(&actions, err, 2);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  pid_t pid = -1;
  const int failed = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), envp.data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::system_error(failed, std::generic_category(), "start " + words[0]);
  return pid;
}

struct Pipe {
  Pipe() {
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw std::system_error(errno, std::generic_category(), "pipe2");
    }
  }
  ~Pipe() {
    for (const int end : ends) close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_writer() { ends[1] = close(ends[1]); }
  static int close(int fd) {
    if (fd >= 0) ::close(fd);
    return -1;
  }
  std::array<int, 2> ends{-1, -1};
};

}  // namespace

Finished run(std::vector<std::string> words, std::vector<std::string> variables,
             std::chrono::milliseconds limit) {
  const Stopwatch watch;
  Pipe out;
  Pipe err;
  const pid_t pid = spawn(words, std::move(variables), out.ends[1], err.ends[1]);
  out.close_writer();
  err.close_writer();
  Finished end;
  std::array<pollfd, 2> ends{{{out.ends[0], POLLIN, 0}, {err.ends[0], POLLIN, 0}}};
  const std::array<std::string*, 2> texts{&end.out, &end.err};
  bool late = false;
  while (!late && (ends[0].fd >= 0 || ends[1].fd >= 0)) {
    const auto left = limit - watch.elapsed();
    late = left.count() <= 0 || ::poll(ends.data(), 2, static_cast<int>(left.count())) == 0;
    for (std::size_t i = 0; !late && i < 2; ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      std::array<char, 16384> bytes;
      const auto n = ::read(ends[i].fd, bytes.data(), bytes.size());
      if (n > 0) texts[i]->append(bytes.data(), static_cast<std::size_t>(n));
      if (n <= 0) ends[i].fd = -1;  // poll ignores it
    }
  }
  // A program may close its output and continue to run. waitpid() then waits for it without a
  // limit.
  if (late) ::kill(pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!late) end.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return end;
}

bool in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access(folder.append("/").append(program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace baton::test
