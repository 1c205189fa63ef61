#include "liveness_copy.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "errors.h"

namespace baton::cli {

namespace {

constexpr int kFirstNumberForJob = 100;

}  // namespace

Fd copy_liveness(int descriptor) {
  Fd copy(fcntl(descriptor, F_DUPFD_CLOEXEC, 3));
  if (!copy) throw os_failure("run: cannot copy the descriptor that keeps the lock", errno);
  return copy;
}

Fd copy_liveness_for_job(int descriptor) {
  Fd copy(fcntl(descriptor, F_DUPFD, kFirstNumberForJob));
  if (!copy) copy = Fd(fcntl(descriptor, F_DUPFD, 3));  // the limit of open files may be below 100
  if (!copy) throw os_failure("run: cannot give the command the descriptor of its lock", errno);
  return copy;
}

void let_lock_go(const Fd& liveness) noexcept {
  if (!liveness) return;
  struct flock all {};  // all copies share one open file, and the OFD lock belongs to it
  all.l_type = F_UNLCK;
  all.l_whence = SEEK_SET;
  fcntl(liveness.get(), F_OFD_SETLK, &all);
}

}  // namespace baton::cli
