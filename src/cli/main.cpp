// main() of the baton command.
#include <baton/error.h>

#include <fcntl.h>

#include <exception>
#include <string>
#include <vector>

#include "args.h"
#include "commands.h"
#include "errors.h"

namespace baton::cli {
namespace {

int dispatch(const Args& args) {
  switch (args.command) {
    case Command::run:
      return run_command(args);
    case Command::ls:
      return ls_command(args);
    case Command::show:
      return show_command(args);
    case Command::watch:
      return watch_command(args);
    case Command::evict:
      return evict_command(args);
    case Command::doctor:
      return doctor_command(args);
  }
  return kInternal;
}

int guarded_main(const std::vector<std::string>& words) noexcept {
  try {
    const auto args = parse_args(words);
    return args ? dispatch(*args) : static_cast<int>(kOk);
  } catch (const Failure& failure) {
    say(failure.what());
    return failure.exit_code();
  } catch (const Error& error) {
    say(error.what());
    return exit_code_of(error.errc());
  } catch (const std::exception& error) {
    say(error.what());
    return kInternal;
  }
}

}  // namespace
}  // namespace baton::cli

int main(int argc, char** argv) {
  // If a standard descriptor is closed, a file that baton opens must not get its number. So open
  // /dev/null there: in the wrong direction, so that using it still fails, and closed on exec, so
  // that CMD finds the descriptor closed, too.
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    if (open("/dev/null", (fd == 0 ? O_WRONLY : O_RDONLY) | O_CLOEXEC) != fd) {
      return baton::cli::kOsError;
    }
  }
  return baton::cli::guarded_main(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
