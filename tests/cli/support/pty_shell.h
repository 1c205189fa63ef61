// PtyShell: a pseudo-terminal with a minimal shell. The shell runs one job in the foreground,
// reports when the job stops or ends, and continues it.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace baton::cli::test {

class PtyShell {
 public:
  enum Mode { kShell, kNoShell };
  // Runs baton with these arguments in the foreground of a new terminal. With kNoShell there are no
  // events, and baton is the session leader. rows: the height of the terminal; 0: not set.
  explicit PtyShell(const std::vector<std::string>& args, Mode mode = kShell,
                    unsigned short rows = 0);
  PtyShell(const PtyShell&) = delete;
  PtyShell& operator=(const PtyShell&) = delete;
  ~PtyShell();  // kills baton and the shell, and closes the terminal

  pid_t baton() const { return baton_; }
  void type(const std::string& keys) const;
  void freeze() const;  // stops the output as Ctrl-S does, but at once
  // Waits until the terminal shows this text, after the text that the last call has found. False:
  // the text did not come before the deadline.
  bool shows(const std::string& text);
  const std::string& screen() const { return screen_; }

  // Waits for the next event of the job: "stopped", "exit 3", "signal 2". "": none came before the
  // deadline.
  std::string event();
  void foreground() const;  // fg
  void background() const;  // bg
  // The process group in the foreground of the terminal.
  pid_t foreground_group() const;

 private:
  int master_ = -1, commands_ = -1, events_ = -1;
  pid_t shell_ = -1, baton_ = -1;
  std::string screen_, event_text_;
  std::size_t seen_ = 0;
};

}  // namespace baton::cli::test
