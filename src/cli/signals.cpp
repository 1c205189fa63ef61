#include "signals.h"

#include <pthread.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "errors.h"

namespace baton::cli {

namespace {

constexpr int kHandled[] = {SIGINT,  SIGTERM,  SIGHUP,  SIGQUIT, SIGUSR1,
                            SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};

// The guardian must not ignore these: faults must end it, and CHLD must be reported.
constexpr int kKeepDefault[] = {SIGKILL, SIGSTOP, SIGCHLD, SIGSEGV, SIGBUS,
                                SIGFPE,  SIGILL,  SIGABRT, SIGTRAP, SIGSYS};

}  // namespace

SignalState SignalState::save() noexcept {
  SignalState state;
  sigprocmask(SIG_SETMASK, nullptr, &state.mask_);
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    state.ignored_[static_cast<std::size_t>(signal)] =
        sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
  }
  return state;
}

void SignalState::restore() const noexcept {
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    action.sa_handler = ignored(signal) ? SIG_IGN : SIG_DFL;
    sigaction(signal, &action, nullptr);  // fails for KILL and STOP, which cannot be changed
  }
  sigprocmask(SIG_SETMASK, &mask_, nullptr);
}

SignalReader::SignalReader(const SignalState& start) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kHandled) {
    if (!start.ignored(signal)) sigaddset(&set, signal);
  }
  fd_ = Fd(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd_) throw os_failure("cannot receive signals", errno);
  // TTOU too: baton changes the terminal's foreground group while it is in the background.
  sigaddset(&set, SIGTTOU);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  // If our parent ignored CHLD, we inherit that, and every wait would fail.
  signal(SIGCHLD, SIG_DFL);
}

int SignalReader::next() const noexcept {
  signalfd_siginfo info{};
  const ssize_t n = read(fd_.get(), &info, sizeof info);
  return n == static_cast<ssize_t>(sizeof info) ? static_cast<int>(info.ssi_signo) : 0;
}

bool asks_to_end(int signal) noexcept {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT ||
         signal == SIGUSR1 || signal == SIGUSR2;
}

bool stop_self() noexcept {
  sigset_t stop;
  sigset_t pending;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTSTP);
  // TSTP, not STOP: TSTP does not stop an orphaned group, which no shell would continue. Sent to
  // the whole group, as the terminal does, because a script that runs baton has to stop as well.
  kill(0, SIGTSTP);
  pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);  // stops here until CONT
  pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  sigpending(&pending);
  return sigismember(&pending, SIGCONT) == 1;  // stays pending for SignalReader
}

void ignore_signals() noexcept {
  for (int signal = 1; signal < NSIG; ++signal) {
    if (std::count(std::begin(kKeepDefault), std::end(kKeepDefault), signal) > 0) continue;
    struct sigaction action {};
    action.sa_handler = SIG_IGN;
    sigaction(signal, &action, nullptr);
  }
  signal(SIGCHLD, SIG_DFL);
}

}  // namespace baton::cli
