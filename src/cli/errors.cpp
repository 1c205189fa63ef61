#include "errors.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>

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

void say(std::string_view text) noexcept {
  try {
    const std::string line = "baton: " + escape_controls(text) + "\n";
    const char* at = line.data();
    std::size_t left = line.size();
    while (left > 0) {
      const ssize_t n = write(STDERR_FILENO, at, left);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;  // nobody to tell
      at += n;
      left -= static_cast<std::size_t>(n);
    }
  } catch (...) {  // out of memory: the exit code still speaks
  }
}

}  // namespace baton::cli
