// Copies of the descriptor that keeps a lock on file://. The kernel holds the lock until the last
// copy is closed: baton has one, the guardian has one, and CMD and what it starts inherit one. So
// the lock is not free while a process of the job works, also when baton and its guardian are both
// killed and nothing is left that could end the job.
#pragma once

#include "fd.h"

namespace baton::cli {

// For this process. Throws Failure.
Fd copy_liveness(int descriptor);

// For CMD: stays open on exec, with a number that shell scripts do not use for files of their own.
// Throws Failure.
Fd copy_liveness_for_job(int descriptor);

// Orderly ends: the job has ended, and copies in processes that left its group, or that CMD left
// behind on purpose, keep nothing from here on.
void let_lock_go(const Fd& liveness) noexcept;

}  // namespace baton::cli
