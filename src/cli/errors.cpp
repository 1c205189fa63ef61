#include "errors.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

#include "fd.h"
#include "text.h"

namespace baton::cli {

Failure os_failure(const std::string& what, int error_number) {
  return {kOsError, what + ": " + std::generic_category().message(error_number)};
}

int exit_code_of(Errc code) noexcept {
  switch (code) {
    case Errc::invalid_name:
    case Errc::invalid_argument:
    case Errc::would_deadlock:
      return kUsage;
    case Errc::timeout:  // of a request to the store; run.cpp handles the timeout of an acquire
    case Errc::connection_failed:
    case Errc::session_expired:
    case Errc::closed:
    case Errc::unsupported:
      return kUnavailable;
    case Errc::permission_denied:
      return kNoPermission;
    case Errc::lock_lost:
    case Errc::evicted:
      return kLockLost;
    default:
      return kInternal;
  }
}

namespace {

// Never blocks, even if stderr is a full pipe without a reader or a terminal after Ctrl-S. A job
// must not outlive its lock because a message could not be written. O_NONBLOCK must not be set on
// stderr itself, because other processes share it. So the write uses a separate descriptor.
ssize_t write_unless_blocked(const char* at, std::size_t left) noexcept {
  struct stat info {};
  if (fstat(STDERR_FILENO, &info) != 0) return -1;
  if (S_ISSOCK(info.st_mode)) return send(STDERR_FILENO, at, left, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode)) {
    const Fd own(open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (own) return write(own.get(), at, left);
    pollfd fds[] = {{STDERR_FILENO, POLLOUT, 0}};  // the terminal of another user, or no /proc
    if (poll(fds, 1, 0) != 1 || (fds[0].revents & POLLOUT) == 0) return -1;
  }
  return write(STDERR_FILENO, at, left);
}

}  // namespace

void say(std::string_view text) noexcept {
  try {
    const std::string line = "baton: " + escape_controls(text) + "\n";
    const char* at = line.data();
    std::size_t left = line.size();
    while (left > 0) {
      const ssize_t n = write_unless_blocked(at, left);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;  // the message cannot be written
      at += n;
      left -= static_cast<std::size_t>(n);
    }
  } catch (...) {  // out of memory: only the exit code tells the failure
  }
}

}  // namespace baton::cli
