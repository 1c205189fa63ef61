#include "support/baton_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace baton::cli::test {

namespace {

using std::chrono::steady_clock;

[[noreturn]] void become_baton(const std::vector<std::string>& args, const Setup& setup) {
  close_range(3, UINT_MAX, 0);  // descriptors that the test has inherited
  for (const char* name : {"BATON_URL", "BATON_HELD", "BATON_LOCK", "BATON_TOKEN"}) unsetenv(name);
  for (const auto& [name, value] : setup.env) setenv(name.c_str(), value.c_str(), 1);
  ::signal(SIGPIPE, SIG_DFL);  // the program that started the test may ignore it
  for (const int number : setup.ignored_signals) ::signal(number, SIG_IGN);
  if (setup.user != 0 && geteuid() == 0 && setuid(setup.user) != 0) _exit(98);
  for (const int fd : setup.closed) close(fd);
  const std::string binary = baton_binary();
  std::vector<char*> argv{const_cast<char*>(binary.c_str())};
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  execv(binary.c_str(), argv.data());
  std::perror(binary.c_str());
  _exit(99);
}

// Reads what is in the pipe. True: all writers have closed it.
bool take(int fd, std::string& into) {
  char buffer[4096];
  ssize_t n = 0;
  while ((n = read(fd, buffer, sizeof buffer)) > 0) {
    into.append(buffer, static_cast<std::size_t>(n));
  }
  return n == 0;
}

// Fills the pipe: the next write to it blocks.
void fill(int fd) {
  const std::string page(4096, '.');
  const int flags = fcntl(fd, F_GETFL);
  fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  while (::write(fd, page.data(), page.size()) > 0) {
  }
  fcntl(fd, F_SETFL, flags);  // baton inherits these flags with the pipe
}

}  // namespace

bool eventually(const std::function<bool()>& condition, std::chrono::milliseconds within) {
  const auto deadline = steady_clock::now() + within;
  while (!condition()) {
    if (steady_clock::now() > deadline) return false;
    poll(nullptr, 0, 5);
  }
  return true;
}

std::string baton_binary() {
  const char* path = getenv("BATON_BIN");
  if (path == nullptr) throw std::runtime_error("BATON_BIN is not set");
  return path;
}

namespace {

// The state of the process in /proc: R, S, T, Z and so on. 0: there is no such process.
char state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const std::size_t end = text.rfind(')');
  return end != std::string::npos && end + 2 < text.size() ? text[end + 2] : '\0';
}

}  // namespace

bool is_running(pid_t pid) {
  const char state = state_of(pid);
  return state != '\0' && state != 'Z' && state != 'X';
}

bool is_stopped(pid_t pid) { return state_of(pid) == 'T'; }

std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> out;
  // The kernel lists a child under the thread that started it.
  std::error_code gone;
  for (const auto& thread :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone)) {
    std::ifstream file(thread.path() / "children");
    for (pid_t child = 0; file >> child;) out.push_back(child);
  }
  return out;
}

BatonProcess::BatonProcess(std::vector<std::string> args, Setup setup) {
  int in[2], out[2], err[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
    throw std::runtime_error("no pipes");
  }
  if (setup.err == Stderr::full) {
    fill(err[1]);
    unread_fd_ = std::exchange(err[0], -1);
  } else if (setup.err == Stderr::broken) {
    close(std::exchange(err[0], -1));
  }
  pid_ = fork();
  if (pid_ == 0) {
    setpgid(0, 0);
    dup2(in[0], 0);
    dup2(out[1], 1);
    dup2(err[1], 2);
    become_baton(args, setup);
  }
  close(in[0]);
  close(out[1]);
  close(err[1]);
  in_ = in[1];
  out_fd_ = out[0];
  err_fd_ = err[0];
  fcntl(out_fd_, F_SETFL, O_NONBLOCK);
  fcntl(err_fd_, F_SETFL, O_NONBLOCK);
  if (setup.close_stdin) close_input();
}

BatonProcess::~BatonProcess() {
  if (!has_ended()) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close_input();
  close(out_fd_);
  close(err_fd_);
  close(unread_fd_);
}

void BatonProcess::signal(int number) const { kill(pid_, number); }

void BatonProcess::write(const std::string& text) const {
  [[maybe_unused]] const ssize_t n = ::write(in_, text.data(), text.size());
}

void BatonProcess::close_input() {
  if (in_ >= 0) close(in_);
  in_ = -1;
}

void BatonProcess::drain() {
  out_closed_ = take(out_fd_, out_);
  err_closed_ = take(err_fd_, err_);
}

bool BatonProcess::says(const std::string& text) {
  eventually([&] {
    drain();
    return out_closed_ || out_.find(text) != std::string::npos;
  });
  return out_.find(text) != std::string::npos;
}

bool BatonProcess::complains(const std::string& text) {
  eventually([&] {
    drain();
    return err_closed_ || err_.find(text) != std::string::npos;
  });
  return err_.find(text) != std::string::npos;
}

std::string BatonProcess::line() {
  std::size_t end = std::string::npos;
  eventually([&] {
    drain();
    end = out_.find('\n', line_at_);
    return out_closed_ || end != std::string::npos;
  });
  if (end == std::string::npos) return "";
  const std::string found = out_.substr(line_at_, end - line_at_);
  line_at_ = end + 1;
  return found;
}

bool BatonProcess::has_ended() {
  if (!ended_) ended_ = waitpid(pid_, &status_, WNOHANG) == pid_;
  return ended_;
}

int BatonProcess::wait() {
  const bool over = eventually([&] {
    drain();
    return has_ended();
  });
  if (!over) {
    kill(pid_, SIGKILL);
    waitpid(pid_, &status_, 0);
    ended_ = true;
    err_ += "\n(the test killed it after its deadline)\n";
  }
  drain();
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_);
}

}  // namespace baton::cli::test
