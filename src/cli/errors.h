// Failure: ends the command with one message and an exit code.
#pragma once

#include <baton/error.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace baton::cli {

// Exit codes, after sysexits.h where it has one.
enum ExitCode : int {
  kOk = 0,
  kFailed = 1,         // the entry does not exist, or the user did not confirm
  kUsage = 64,         // the command line, a lock name or a URL is not valid
  kUnavailable = 69,   // the store cannot be reached
  kInternal = 70,      // a bug of the store or of baton
  kOsError = 71,       // the system refused a process, a pipe or a descriptor
  kNotInTime = 75,     // timed out waiting for the lock
  kLockLost = 76,      // the lock was lost, or could no longer be guarded, while CMD ran
  kNoPermission = 77,  // the store refuses access
  kCannotExec = 126,   // CMD exists but cannot be run
  kNotFound = 127,     // CMD does not exist
  kSignalBase = 128,   // + n: signal n ended CMD, or ended baton before CMD ran
};

// Ends the command with this exit code after `baton: message` on stderr.
class Failure : public std::runtime_error {
 public:
  Failure(int exit_code, const std::string& message)
      : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

// "what: text of errno", with kOsError.
Failure os_failure(const std::string& what, int error_number);

int exit_code_of(Errc code) noexcept;

// One line on stderr: "baton: text", control bytes escaped, in one write.
void say(std::string_view text) noexcept;

}  // namespace baton::cli
