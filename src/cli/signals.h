// Signals of baton run: which are passed on, and how CMD gets back what baton was started with.
#pragma once

#include <signal.h>

#include <array>

#include "fd.h"

namespace baton::cli {

// How the process was started: its mask, and which signals were ignored (nohup, cron).
class SignalState {
 public:
  static SignalState save() noexcept;
  bool ignored(int signal) const noexcept { return ignored_[static_cast<std::size_t>(signal)]; }
  // Back to that state, for a child about to exec. Async-signal-safe.
  void restore() const noexcept;

 private:
  sigset_t mask_{};
  std::array<bool, NSIG> ignored_{};
};

// Blocks what baton run handles, in this thread and those it starts later, and reads it from a
// descriptor. What was ignored at the start stays ignored: a job under nohup must not see HUP.
class SignalReader {
 public:
  explicit SignalReader(const SignalState& start);  // throws Failure
  int fd() const noexcept { return fd_.get(); }
  int next() const noexcept;  // 0: none pending

 private:
  Fd fd_;
};

// Whether this signal, sent to a process that only waits, asks it to end.
bool asks_to_end(int signal) noexcept;

// Stops this process group as Ctrl-Z would, and returns when somebody continued us: true. False:
// nobody could (an orphaned group, as in a container), and the kernel did not stop us.
bool stop_self() noexcept;

// In the guardian: ignores everything a terminal or a passer-by may send.
void ignore_signals() noexcept;

}  // namespace baton::cli
