// The controlling terminal, and which process group is in its foreground.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include "fd.h"

namespace baton::cli {

// Opened before the guardian is forked: both have it. Needs TTOU blocked or ignored.
class Terminal {
 public:
  Terminal();  // never fails: without a controlling terminal all calls do nothing

  bool exists() const noexcept { return static_cast<bool>(fd_); }
  int fd() const noexcept { return fd_.get(); }

  // Whether CMD should have the terminal from the start: we lead the foreground group, and stdin
  // and stdout are terminals. Else a neighbour (`baton run … | less`, a script around us) may
  // need it more; CMD gets it when it asks, by being stopped with TTIN or TTOU.
  bool is_all_ours() const noexcept;
  bool is_in_foreground() const noexcept;  // the group of baton run

  void give(pid_t group) const noexcept;
  // Takes it back if that group has it, and with modes, undoes what a killed job did to it.
  void take_back(pid_t group, bool modes) const noexcept;

 private:
  Fd fd_;
  pid_t ours_ = 0;
  bool have_modes_ = false;
  termios modes_{};
};

}  // namespace baton::cli
