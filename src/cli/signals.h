// Signals of baton run: reads the signals to send on to CMD, and restores for CMD the signal state
// that baton was started with.
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
  // Restores that state, in a child before exec. Async-signal-safe.
  void restore() const noexcept;

 private:
  sigset_t mask_{};
  std::array<bool, NSIG> ignored_{};
};

// Blocks the signals that baton run handles, in this thread and those it starts later, and reads
// them from a descriptor. Signals that were ignored at the start stay ignored: a job under nohup
// must not get HUP.
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

// Stops this process group as Ctrl-Z does, and returns true after CONT. False: the kernel did not
// stop the group, because it is orphaned (as in a container) and no shell could continue it.
bool stop_self() noexcept;

// For the guardian: ignores every signal that a terminal or another process may send, except those
// that must end the guardian.
void ignore_signals() noexcept;

}  // namespace baton::cli
