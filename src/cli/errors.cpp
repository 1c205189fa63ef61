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
    case Errc::timeout:  // of a question to the store; an acquire's timeout is told apart earlier
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

// Never blocks, whatever stderr is: a pipe that nobody reads, a terminal after Ctrl-S. A job must
// not outlive its lock because a message could not be shown. O_NONBLOCK must not be set on stderr
// itself, which others share: it goes on a descriptor of our own.
ssize_t write_unless_blocked(const char* at, std::size_t left) noexcept {
  struct stat info {};
  if (fstat(STDERR_FILENO, &info) != 0) return -1;
  if (S_ISSOCK(info.st_mode)) return send(STDERR_FILENO, at, left, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode)) {
    const Fd own(open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (own) return write(own.get(), at, left);
    pollfd fds[] = {{STDERR_FILENO, POLLOUT, 0}};  // somebody else's terminal, or no /proc
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
      if (n <= 0) return;  // nobody to tell
      at += n;
      left -= static_cast<std::size_t>(n);
    }
  } catch (...) {  // out of memory: the exit code still speaks
  }
}

}  // namespace baton::cli
