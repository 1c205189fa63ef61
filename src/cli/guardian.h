// The guardian: a second process of baton run that outlives it when it is killed.
//
// It is forked before the first thread and before the store is touched, ignores every signal it
// can, and is the parent of CMD. It holds a copy of the client's liveness descriptor: on file://
// the kernel keeps the lock while there is a copy. When baton dies, the socket between them closes;
// the guardian ends CMD's group, waits until no process in it lives, and then lets the lock go. On
// stores with a lease there is nothing to hold: the guardian knows the deadline and has ended the
// group before it, also when baton is not running at all (stopped, starved). Baton does the same
// when the guardian is not running: both follow one EndPlan.
//
// Both are subreapers. What CMD leaves behind comes to the guardian; if the guardian is killed,
// CMD comes to baton, which ends the group, releases the lock and exits with kLockLost.
#pragma once

#include <sys/types.h>

#include <utility>

#include "guardian_link.h"
#include "job.h"
#include "signals.h"
#include "terminal.h"

namespace baton::cli {

// Baton's side of it.
class Guardian {
 public:
  Guardian(pid_t process, Link socket) noexcept : link(std::move(socket)), pid_(process) {}
  Guardian(Guardian&& other) noexcept
      : link(std::move(other.link)), pid_(std::exchange(other.pid_, -1)) {}
  Guardian& operator=(Guardian&&) = delete;
  ~Guardian() { dismiss(); }

  pid_t pid() const noexcept { return pid_; }

  // Sends it away, without touching CMD, and waits until it is gone.
  void dismiss() noexcept;
  // It was killed: waits until its children are ours. (We are a subreaper, and its socket closes
  // before they come to us.)
  void bury() noexcept;

  Link link;

 private:
  pid_t pid_;  // -1: gone
};

// Call it while the process has one thread. Throws Failure.
Guardian start_guardian(const JobSpec& spec, const SignalState& signals, const Terminal& terminal);

}  // namespace baton::cli
