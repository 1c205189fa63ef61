// Copies the descriptor that keeps a lock on file://. The kernel keeps the lock until the last copy
// is closed. Baton and the guardian have one each; CMD and the processes it starts inherit one. So
// the lock is not free while a process of the job works, even if baton and its guardian are both
// killed and no process can end the job.
#pragma once

#include "fd.h"

namespace baton::cli {

// For this process. Throws Failure.
Fd copy_liveness(int descriptor);

// For CMD: stays open on exec, with a number that shell scripts do not use for their own files.
// Throws Failure.
Fd copy_liveness_for_job(int descriptor);

// Frees the lock although copies are left. For the end of a job: processes that left its group, or
// that CMD left running on purpose, may have copies, which no longer keep the lock.
void let_lock_go(const Fd& liveness) noexcept;

}  // namespace baton::cli
