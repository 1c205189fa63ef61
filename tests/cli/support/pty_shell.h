// A terminal with a shell in it: just enough of one to have jobs in the foreground, see them stop,
// and continue them.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace baton::cli::test {

class PtyShell {
 public:
  enum Mode { kShell, kNoShell };
  // Runs baton with these arguments in the foreground of a new terminal; without a shell baton
  // leads the session, and there are no events. 0 rows: as high as the kernel makes it.
  explicit PtyShell(const std::vector<std::string>& args, Mode mode = kShell,
                    unsigned short rows = 0);
  PtyShell(const PtyShell&) = delete;
  PtyShell& operator=(const PtyShell&) = delete;
  ~PtyShell();  // hangs up

  pid_t baton() const { return baton_; }
  void type(const std::string& keys) const;
  void freeze() const;  // no more output, as by Ctrl-S, but at once
  // Waits until the screen has shown this since the last call. False: not in time.
  bool shows(const std::string& text);
  const std::string& screen() const { return screen_; }

  // What the shell sees of its job: "stopped", "exit 3", "signal 2"; "" not in time.
  std::string event();
  void foreground() const;  // fg
  void background() const;  // bg
  // Whether the shell itself has the terminal: it must be able to take it without help.
  pid_t foreground_group() const;

 private:
  int master_ = -1, commands_ = -1, events_ = -1;
  pid_t shell_ = -1, baton_ = -1;
  std::string screen_, event_text_;
  std::size_t seen_ = 0;
};

}  // namespace baton::cli::test
