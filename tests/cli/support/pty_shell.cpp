#include "support/pty_shell.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <stdexcept>

#include "support/baton_process.h"

namespace baton::cli::test {

namespace {

void take(int fd, std::string& into) {
  char buffer[4096];
  for (ssize_t n = 0; (n = read(fd, buffer, sizeof buffer)) > 0;) {
    into.append(buffer, static_cast<std::size_t>(n));
  }
}

void become_baton(const std::vector<std::string>& args) {
  for (const int number : {SIGTTOU, SIGTTIN, SIGTSTP, SIGINT}) signal(number, SIG_DFL);
  unsetenv("BATON_HELD");
  std::vector<char*> argv{const_cast<char*>("baton")};
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  execv(baton_binary().c_str(), argv.data());
  _exit(99);
}

// The shell: reports the events of its job, and obeys the commands "f" (fg) and "b" (bg).
[[noreturn]] void become_shell(const std::vector<std::string>& args, int commands, int events) {
  for (const int number : {SIGTTOU, SIGTTIN, SIGTSTP, SIGINT}) signal(number, SIG_IGN);
  const pid_t job = fork();
  if (job == 0) {
    setpgid(0, 0);
    tcsetpgrp(0, getpid());
    become_baton(args);
  }
  setpgid(job, job);
  tcsetpgrp(0, job);
  dprintf(events, "job %d\n", job);
  for (;;) {
    int status = 0;
    if (waitpid(job, &status, WUNTRACED | WNOHANG) == job) {
      tcsetpgrp(0, getpgrp());
      if (WIFSTOPPED(status)) dprintf(events, "stopped\n");
      if (WIFEXITED(status)) dprintf(events, "exit %d\n", WEXITSTATUS(status));
      if (WIFSIGNALED(status)) dprintf(events, "signal %d\n", WTERMSIG(status));
    }
    pollfd fds[] = {{commands, POLLIN, 0}};
    if (poll(fds, 1, 5) <= 0) continue;
    char command = 0;
    if (read(commands, &command, 1) <= 0) _exit(0);
    if (command == 'f') tcsetpgrp(0, job);
    kill(-job, SIGCONT);
  }
}

}  // namespace

PtyShell::PtyShell(const std::vector<std::string>& args, Mode mode, unsigned short rows) {
  int commands[2], events[2];
  if (pipe2(commands, O_CLOEXEC) != 0 || pipe2(events, O_CLOEXEC) != 0) {
    throw std::runtime_error("no pipes");
  }
  const winsize size{rows, 80, 0, 0};
  shell_ = forkpty(&master_, nullptr, nullptr, rows > 0 ? &size : nullptr);
  if (shell_ < 0) throw std::runtime_error("no terminal");
  if (shell_ == 0) {
    close(commands[1]);
    if (mode == kNoShell) become_baton(args);
    become_shell(args, commands[0], events[1]);
  }
  close(commands[0]);
  close(events[1]);
  commands_ = commands[1];
  events_ = events[0];
  fcntl(master_, F_SETFL, O_NONBLOCK);
  fcntl(master_, F_SETFD, FD_CLOEXEC);
  fcntl(events_, F_SETFL, O_NONBLOCK);
  baton_ = shell_;
  if (mode == kNoShell) return;
  const std::string first = event();
  if (first.rfind("job ", 0) != 0) throw std::runtime_error("the shell has not started its job");
  baton_ = atoi(first.c_str() + 4);
}

PtyShell::~PtyShell() {
  if (is_running(baton_)) kill(baton_, SIGKILL);
  kill(shell_, SIGKILL);
  waitpid(shell_, nullptr, 0);
  close(master_);
  close(commands_);
  close(events_);
}

void PtyShell::type(const std::string& keys) const {
  [[maybe_unused]] const ssize_t n = write(master_, keys.data(), keys.size());
}

void PtyShell::freeze() const {
  const int terminal = open(ptsname(master_), O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (terminal < 0 || tcflow(terminal, TCOOFF) != 0) throw std::runtime_error("it goes on");
  close(terminal);
}

bool PtyShell::shows(const std::string& text) {
  return eventually([&] {
    take(master_, screen_);
    const std::size_t at = screen_.find(text, seen_);
    if (at == std::string::npos) return false;
    seen_ = at + text.size();
    return true;
  });
}

std::string PtyShell::event() {
  std::string line;
  eventually([&] {
    take(master_, screen_);  // a full terminal would block all writers
    take(events_, event_text_);
    const std::size_t end = event_text_.find('\n');
    if (end == std::string::npos) return false;
    line = event_text_.substr(0, end);
    event_text_.erase(0, end + 1);
    return true;
  });
  return line;
}

void PtyShell::foreground() const { [[maybe_unused]] const ssize_t n = write(commands_, "f", 1); }

void PtyShell::background() const { [[maybe_unused]] const ssize_t n = write(commands_, "b", 1); }

pid_t PtyShell::foreground_group() const { return tcgetpgrp(master_); }

}  // namespace baton::cli::test
