// Job: the process of CMD, the leader of its own process group. It waits for go() before it runs.
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

// The guardian starts it and is its parent. The guardian has one thread, so fork() is safe there.
class Job {
 public:
  // Forks. The child leads its group when this returns, but runs CMD only after go(), and ends if
  // the guardian dies before. CMD inherits a copy of the liveness descriptor, if there is one (-1:
  // none). Throws Failure.
  Job(const JobSpec& spec, const SignalState& signals, std::uint64_t token, int liveness);

  pid_t group() const noexcept { return pid_; }
  void go() noexcept;

  // After the end of CMD: the errno of exec; 0: CMD did run.
  int exec_error() const noexcept;
  int error_fd() const noexcept { return exec_error_.get(); }
  int go_fd() const noexcept { return go_.get(); }

 private:
  pid_t pid_ = -1;
  Fd go_;
  Fd exec_error_;
};

}  // namespace baton::cli
