// Guardian: a second process of baton run. It ends CMD when baton is killed.
//
// Baton forks it before the first thread and before the store is opened. It ignores every signal it
// can, and it is the parent of CMD. When baton dies, the socket between them closes. Then the
// guardian ends CMD's group and waits until no process in it lives. What keeps the lock meanwhile:
//  - On file:// the guardian has a copy of the client's liveness descriptor, and the kernel keeps
//    the lock while there is a copy. The guardian frees the lock when the group has ended.
//  - On stores with a lease there is no such copy. The guardian knows the deadline of the lock and
//    ends the group before it, also when baton is not dead but does not run (stopped, starved).
// Baton does the same when the guardian does not run: both follow one EndPlan.
//
// Both are subreapers. Orphans of CMD become children of the guardian. If the guardian is killed,
// CMD becomes a child of baton, which ends the group, releases the lock and exits with kLockLost.
#pragma once

#include <sys/types.h>

#include <utility>

#include "guardian_link.h"
#include "job.h"
#include "signals.h"
#include "terminal.h"

namespace baton::cli {

// The guardian as baton sees it.
class Guardian {
 public:
  Guardian(pid_t process, Link socket) noexcept : link(std::move(socket)), pid_(process) {}
  Guardian(Guardian&& other) noexcept
      : link(std::move(other.link)), pid_(std::exchange(other.pid_, -1)) {}
  Guardian& operator=(Guardian&&) = delete;
  ~Guardian() { dismiss(); }

  pid_t pid() const noexcept { return pid_; }

  // Makes the guardian exit without touching CMD, and waits until it has exited.
  void dismiss() noexcept;
  // Call it when the guardian was killed. Waits until its children are children of baton: its
  // socket closes before that.
  void bury() noexcept;

  Link link;

 private:
  pid_t pid_;  // -1: gone
};

// Call it while the process has one thread. Throws Failure.
Guardian start_guardian(const JobSpec& spec, const SignalState& signals, const Terminal& terminal);

}  // namespace baton::cli
