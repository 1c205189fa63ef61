#include "support/server_process.h"

#include "support/boot_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <fstream>
#include <functional>
#include <future>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

extern char** environ;

namespace baton::test {
namespace {

// The thread that starts all children. It ends with the process.
class Spawner {
 public:
  static pid_t spawn(const std::vector<std::string>& command, const std::string& log) {
    // Never deleted: children are killed when its thread ends.
    static auto* const one = new Spawner;
    return one->ask([&] { return spawn_now(command, log); });
  }

 private:
  Spawner() {
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] { run(); }).detach();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  pid_t ask(std::function<pid_t()> question) {
    std::packaged_task<pid_t()> task(std::move(question));
    auto answer = task.get_future();
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    more_.notify_one();
    return answer.get();
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      more_.wait(lock, [this] { return !tasks_.empty(); });
      auto task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  static pid_t spawn_now(const std::vector<std::string>& command, const std::string& log);

  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::packaged_task<pid_t()>> tasks_;
};

pid_t Spawner::spawn_now(const std::vector<std::string>& command, const std::string& log) {
  // The shell checks whether the test died before setpriv set the death signal. setpriv and the
  // shell use exec, so the child becomes the server.
  std::vector<std::string> words{"setpriv",
                                 "--pdeathsig",
                                 "KILL",
                                 "sh",
                                 "-c",
                                 R"([ "$PPID" = "$0" ] && exec "$@")",
                                 std::to_string(::getpid())};
  words.insert(words.end(), command.begin(), command.end());
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  ::posix_spawn_file_actions_adddup2(&actions, 1, 2);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  sigset_t defaults;
  ::sigemptyset(&none);
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGPIPE);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int failed = ::posix_spawnp(&pid, argv[0], &actions, &attributes, argv.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) throw std::system_error(failed, std::generic_category(), "start " + command[0]);
  return pid;
}

std::string describe(int status) {
  if (WIFEXITED(status)) return "exit code " + std::to_string(WEXITSTATUS(status));
  return "signal " + std::to_string(WTERMSIG(status));
}

}  // namespace

ServerProcess::ServerProcess(std::vector<std::string> command, std::string log)
    : command_(std::move(command)), log_(std::move(log)) {}

ServerProcess::~ServerProcess() { kill(); }

void ServerProcess::start() {
  const std::lock_guard lock(mutex_);
  if (reap()) return;
  pid_ = Spawner::spawn(command_, log_);
  status_.reset();
}

bool ServerProcess::reap() {
  if (pid_ < 0) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
  status_ = status;
  pid_ = -1;
  paused_ = false;
  return false;
}

void ServerProcess::kill() {
  const std::lock_guard lock(mutex_);
  if (!reap()) return;
  ::kill(pid_, SIGKILL);
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  status_ = status;
  pid_ = -1;
  paused_ = false;
}

void ServerProcess::pause() {
  const std::lock_guard lock(mutex_);
  if (!reap() || paused_) return;
  ::kill(pid_, SIGSTOP);
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  if (info.si_code != CLD_STOPPED) throw std::runtime_error(log_ + ": ended instead of pausing");
  paused_ = true;
}

void ServerProcess::resume() {
  const std::lock_guard lock(mutex_);
  if (!paused_) return;
  ::kill(pid_, SIGCONT);
  paused_ = false;
}

bool ServerProcess::running() {
  const std::lock_guard lock(mutex_);
  return reap();
}

bool ServerProcess::paused() const {
  const std::lock_guard lock(mutex_);
  return paused_;
}

pid_t ServerProcess::pid() const {
  const std::lock_guard lock(mutex_);
  return pid_;
}

std::string ServerProcess::tail(int lines) {
  std::deque<std::string> last;
  std::ifstream in(log_);
  for (std::string text; std::getline(in, text);) {
    last.push_back(std::move(text));
    if (last.size() > static_cast<std::size_t>(lines)) last.pop_front();
  }
  std::string all;
  for (const auto& text : last) all += "  " + text + "\n";
  const std::lock_guard lock(mutex_);
  if (!reap()) all += status_ ? "  ended with " + describe(*status_) + "\n" : "  not started\n";
  return all;
}

bool ServerProcess::log_contains(const std::string& what) const {
  std::ifstream in(log_);
  for (std::string text; std::getline(in, text);) {
    if (text.find(what) != text.npos) return true;
  }
  return false;
}

}  // namespace baton::test
