// Terminal: gives the controlling terminal to CMD's process group and takes it back.
#pragma once

#include <sys/types.h>
#include <termios.h>

#include "fd.h"

namespace baton::cli {

// Open it before the guardian is forked, so that both processes have it. TTOU must be blocked or
// ignored.
class Terminal {
 public:
  Terminal();  // never fails: without a controlling terminal all calls do nothing

  bool exists() const noexcept { return static_cast<bool>(fd_); }
  int fd() const noexcept { return fd_.get(); }

  // Whether CMD gets the terminal from the start: baton leads the foreground group, and stdin and
  // stdout are terminals. Otherwise another process (`baton run … | less`, a script that runs
  // baton) may need it. Then CMD gets the terminal when TTIN or TTOU stops it.
  bool is_all_ours() const noexcept;
  bool is_in_foreground() const noexcept;  // the group of baton run

  void give(pid_t group) const noexcept;
  // Takes the terminal back if that group has it. modes: also restores the terminal modes, which a
  // killed job may have changed.
  void take_back(pid_t group, bool modes) const noexcept;

 private:
  Fd fd_;
  pid_t ours_ = 0;
  bool have_modes_ = false;
  termios modes_{};
};

}  // namespace baton::cli
