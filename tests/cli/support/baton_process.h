// A run of the real baton command, with pipes to it and deadlines on everything.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace baton::cli::test {

// Long, because a busy machine is not a bug; reached only by a test that fails.
constexpr std::chrono::seconds kDeadline{30};

// Asks again until it is true. False after the deadline.
bool eventually(const std::function<bool()>& condition,
                std::chrono::milliseconds within = kDeadline);

// The binary under test: BATON_BIN.
std::string baton_binary();

// Whether a process is there and not a zombie.
bool is_running(pid_t pid);
// Whether a process stands still, by SIGSTOP for one.
bool is_stopped(pid_t pid);
// Children of a process, as /proc tells.
std::vector<pid_t> children_of(pid_t pid);

// What baton has for stderr: a pipe that we read, one that is full and that nobody reads, or one
// whose reader is gone.
enum class Stderr { read, full, broken };

struct Setup {
  std::vector<std::pair<std::string, std::string>> env{};  // added to a clean environment
  std::vector<int> ignored_signals{};                      // as nohup does
  bool close_stdin = true;                                 // else write() and close_input() do
  unsigned user = 0;                                       // if we are root: run as this one
  Stderr err = Stderr::read;                               // else nothing is known of what it says
  std::vector<int> closed{};                               // of 0, 1 and 2
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
  ~BatonProcess();  // kills what is left: baton, and by the guardian its job

  pid_t pid() const { return pid_; }
  void signal(int number) const;
  void write(const std::string& text) const;
  void close_input();

  // Waits until stdout, or stderr, contains the text. False: not in time, or all writers are gone.
  bool says(const std::string& text);
  bool complains(const std::string& text);
  // The next whole line of stdout, without its end; "" if there is none in time.
  std::string line();

  // Waits for the end: its exit code, or -n when signal n ended baton itself.
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
