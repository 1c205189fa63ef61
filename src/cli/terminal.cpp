#include "terminal.h"

#include <fcntl.h>
#include <unistd.h>

namespace baton::cli {

Terminal::Terminal()
    : fd_(open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)), ours_(getpgrp()) {
  have_modes_ = fd_ && tcgetattr(fd_.get(), &modes_) == 0;
}

bool Terminal::is_all_ours() const noexcept {
  return is_in_foreground() && ours_ == getpid() && isatty(STDIN_FILENO) != 0 &&
         isatty(STDOUT_FILENO) != 0;
}

bool Terminal::is_in_foreground() const noexcept {
  return exists() && tcgetpgrp(fd_.get()) == ours_;
}

void Terminal::give(pid_t group) const noexcept {
  if (exists()) tcsetpgrp(fd_.get(), group);
}

void Terminal::take_back(pid_t group, bool modes) const noexcept {
  if (!exists() || tcgetpgrp(fd_.get()) != group) return;
  tcsetpgrp(fd_.get(), ours_);
  if (modes && have_modes_) tcsetattr(fd_.get(), TCSANOW, &modes_);
}

}  // namespace baton::cli
