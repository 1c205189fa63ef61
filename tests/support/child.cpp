#include "support/child.h"

#include "support/boot_clock.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>

extern char** environ;

namespace baton::test {
namespace {

int decode(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

int entries_of(const char* directory) {
  const std::filesystem::directory_iterator begin(directory);
  return static_cast<int>(std::distance(begin, std::filesystem::directory_iterator()));
}

}  // namespace

Child::Child(const std::vector<std::string>& arguments) : Child(BATON_TEST_CHILD_PATH, arguments) {}

Child::Child(const std::string& program, const std::vector<std::string>& arguments) {
  ::signal(SIGPIPE, SIG_IGN);
  int to[2];
  int from[2];
  if (::pipe2(to, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0) {
    throw std::runtime_error("pipe2");
  }
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, to[0], 0);
  ::posix_spawn_file_actions_adddup2(&actions, from[1], 1);
  const int failed = ::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(to[0]);
  ::close(from[1]);
  in_ = to[1];
  out_ = from[0];
  if (failed != 0) {
    ::close(in_);
    ::close(out_);
    throw std::system_error(failed, std::generic_category(), "posix_spawn " + words[0]);
  }
}

Child::~Child() {
  kill_hard();
  close_input();
  ::close(out_);
}

std::optional<std::string> Child::line(std::chrono::milliseconds limit) {
  const Stopwatch watch;
  for (;;) {
    if (const auto end = buffer_.find('\n'); end != buffer_.npos) {
      std::string found = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return found;
    }
    const auto left = limit - watch.elapsed();
    if (left.count() <= 0) return std::nullopt;
    pollfd p{out_, POLLIN, 0};
    if (::poll(&p, 1, static_cast<int>(left.count())) <= 0) continue;
    char bytes[4096];
    const auto n = ::read(out_, bytes, sizeof bytes);
    if (n <= 0) return std::nullopt;
    buffer_.append(bytes, static_cast<std::size_t>(n));
  }
}

std::optional<std::string> Child::line_with(const std::string& prefix,
                                            std::chrono::milliseconds limit) {
  const Stopwatch watch;
  while (auto next = line(limit - watch.elapsed())) {
    if (next->starts_with(prefix)) return next;
  }
  return std::nullopt;
}

bool Child::silent() const {
  pollfd p{out_, POLLIN, 0};
  return buffer_.empty() && ::poll(&p, 1, 0) == 0;
}

void Child::say(const std::string& text) {
  const std::string full = text + "\n";
  [[maybe_unused]] const auto n = ::write(in_, full.data(), full.size());
}

void Child::close_input() {
  if (in_ >= 0) ::close(in_);
  in_ = -1;
}

void Child::signal(int number) const {
  if (!status_) ::kill(pid_, number);
}

void Child::kill_hard() {
  if (status_) return;
  ::kill(pid_, SIGKILL);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  status_ = decode(status);
}

bool Child::stop(std::chrono::milliseconds limit) {
  signal(SIGSTOP);
  for (const Stopwatch watch; watch.elapsed() < limit;) {
    int status = 0;
    if (::waitpid(pid_, &status, WUNTRACED | WNOHANG) == pid_) {
      if (WIFSTOPPED(status)) return true;
      status_ = decode(status);
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

std::optional<int> Child::exit_code(std::chrono::milliseconds limit) {
  for (const Stopwatch watch; !status_ && watch.elapsed() < limit;) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      status_ = decode(status);
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  return status_;
}

long Child::wakes() const {
  long total = 0;
  const std::string tasks = "/proc/" + std::to_string(pid_) + "/task";
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator(tasks, gone)) {
    std::ifstream status(task.path() / "status");
    for (std::string text; std::getline(status, text);) {
      if (text.starts_with("voluntary_ctxt_switches:")) {
        total += std::atol(text.c_str() + text.find(':') + 1);
      }
    }
  }
  return total;
}

unsigned long long number_in(const std::string& line, int n) {
  std::istringstream words(line);
  std::string word;
  for (int i = 0; i <= n; ++i) {
    if (!(words >> word)) return 0;
  }
  return std::strtoull(word.c_str(), nullptr, 10);
}

int threads_of_this_process() { return entries_of("/proc/self/task"); }
int descriptors_of_this_process() { return entries_of("/proc/self/fd"); }

}  // namespace baton::test
