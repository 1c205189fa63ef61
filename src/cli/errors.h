// How the command fails: one sentence and an exit code.
#pragma once

#include <baton/error.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace baton::cli {

// Exit codes, after sysexits.h where it has one.
enum ExitCode : int {
  kOk = 0,
  kFailed = 1,         // asked for something that is not there, or the answer was no
  kUsage = 64,         // the command line, a lock name or a URL makes no sense
  kUnavailable = 69,   // the store cannot be reached
  kInternal = 70,      // the store or baton did something it never should
  kOsError = 71,       // the system refused a process, a pipe, a descriptor
  kNotInTime = 75,     // the lock was not had in time
  kLockLost = 76,      // the lock was lost, or could no longer be guarded, while CMD ran
  kNoPermission = 77,  // the store refuses us
  kCannotExec = 126,   // CMD is there but cannot be run
  kNotFound = 127,     // CMD is not there
  kSignalBase = 128,   // + n: CMD died of signal n, or baton was told to stop by it
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
