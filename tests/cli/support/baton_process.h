// BatonProcess: runs the real baton command with pipes. Every wait for it has a deadline.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace baton::cli::test {

// Long, because the test machine may be busy. Only a failing test waits this long.
constexpr std::chrono::seconds kDeadline{30};

// Polls until the condition is true. False: the time is over.
bool eventually(const std::function<bool()>& condition,
                std::chrono::milliseconds within = kDeadline);

// The path of the command under test, from BATON_BIN.
std::string baton_binary();

// Whether the process exists and is not a zombie.
bool is_running(pid_t pid);
// Whether the process is stopped, for example by SIGSTOP.
bool is_stopped(pid_t pid);
// The children of the process, from /proc.
std::vector<pid_t> children_of(pid_t pid);

// The stderr of baton: a pipe that the test reads, a full pipe that is never read, or a pipe whose
// reader is closed.
enum class Stderr { read, full, broken };

struct Setup {
  std::vector<std::pair<std::string, std::string>> env{};  // added to the environment of the test
  std::vector<int> ignored_signals{};                      // ignored from the start, as by nohup
  bool close_stdin = true;                                 // false: for write() and close_input()
  unsigned user = 0;                                       // run as this user if the test is root
  Stderr err = Stderr::read;                               // if not `read`, err() is empty
  std::vector<int> closed{};                               // which of 0, 1 and 2 are closed
};

// Keeps the pipe to stdin open.
inline Setup with_input() { return {{}, {}, false, 0}; }
inline Setup with_stderr(Stderr err) { return {{}, {}, true, 0, err, {}}; }
inline Setup with_closed(std::vector<int> fds) {
  return {{}, {}, true, 0, Stderr::read, std::move(fds)};
}

class BatonProcess {
 public:
  explicit BatonProcess(std::vector<std::string> args, Setup setup = {});
  BatonProcess(const BatonProcess&) = delete;
  BatonProcess& operator=(const BatonProcess&) = delete;
  ~BatonProcess();  // kills baton if it still runs; then the guardian ends the job

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  void write(const std::string& text) const;
  void close_input();

  // Wait until stdout (says) or stderr (complains) contains the text. False: the text did not come
  // before the deadline, or all writers have closed the pipe.
  bool says(const std::string& text);
  bool complains(const std::string& text);
  // The next complete line of stdout, without the newline. "": none came before the deadline.
  std::string line();

  // Waits until baton has ended. Returns its exit code, or -n if signal n ended it.
  int wait();
  bool has_ended();

  const std::string& out() const { return out_; }
  const std::string& err() const { return err_; }

 private:
  void drain();

  pid_t pid_ = -1;
  int in_ = -1, out_fd_ = -1, err_fd_ = -1, unread_fd_ = -1;
  bool ended_ = false, out_closed_ = false, err_closed_ = false;
  int status_ = 0;
  std::string out_, err_;
  std::size_t line_at_ = 0;
};

}  // namespace baton::cli::test
