// Starts child processes for tests, with posix_spawn and never with fork.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace baton::test {

// One running program, by default baton_test_child. The test reads its output and writes its input
// by lines. The destructor kills and reaps the process if it still runs.
class Child {
 public:
  // The arguments after the program name: the role and its parameters.
  explicit Child(const std::vector<std::string>& arguments);
  Child(const std::string& program, const std::vector<std::string>& arguments);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const noexcept { return pid_; }

  // The next line of its output. nullopt: no line came in time, or the process has ended.
  std::optional<std::string> line(std::chrono::milliseconds limit = std::chrono::seconds(30));
  // Reads up to a line that begins with `prefix`, and drops all lines before it.
  std::optional<std::string> line_with(const std::string& prefix,
                                       std::chrono::milliseconds limit = std::chrono::seconds(30));
  bool silent() const;                // there is no unread output
  void say(const std::string& text);  // writes a line to its input
  void close_input();

  void signal(int number) const;
  // Kills the process with SIGKILL and returns when it is gone.
  void kill_hard();
  // Sends SIGSTOP and returns when the kernel reports that the process is stopped.
  bool stop(std::chrono::milliseconds limit = std::chrono::seconds(10));
  // Waits until the process ends. The exit code, 128 + n for signal n, or nullopt: it still runs.
  std::optional<int> exit_code(std::chrono::milliseconds limit = std::chrono::seconds(30));

  // Voluntary context switches of all its threads. This counts how often the threads have been
  // woken.
  long wakes() const;

 private:
  pid_t pid_ = -1;
  int in_ = -1;   // the test writes here
  int out_ = -1;  // the test reads here
  std::string buffer_;
  std::optional<int> status_;
};

// The n-th word of a line as a number, counted from 0. 0 if there is none.
unsigned long long number_in(const std::string& line, int n);

// The number of threads of this process.
int threads_of_this_process();
// The number of descriptors that this process has open.
int descriptors_of_this_process();

}  // namespace baton::test
