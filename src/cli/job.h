// CMD: a process that leads a group of its own, ready to run and waiting for the word.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "fd.h"
#include "signals.h"

namespace baton::cli {

struct JobSpec {
  std::vector<std::string> argv;
  std::string lock;
  std::string store;  // its identity, for BATON_HELD
};

// Started by the guardian, which is its parent: a process with one thread, so that fork is clean.
class Job {
 public:
  // Forks. The child leads its group when this returns, but runs CMD only after go(), and ends if
  // the guardian dies before. CMD inherits a copy of the liveness descriptor, if there is one (-1:
  // none). Throws Failure.
  Job(const JobSpec& spec, const SignalState& signals, std::uint64_t token, int liveness);

  pid_t group() const noexcept { return pid_; }
  void go() noexcept;

  // After its end: why CMD could not be run, an errno; 0: it did run.
  int exec_error() const noexcept;
  int error_fd() const noexcept { return exec_error_.get(); }
  int go_fd() const noexcept { return go_.get(); }

 private:
  pid_t pid_ = -1;
  Fd go_;
  Fd exec_error_;
};

}  // namespace baton::cli
