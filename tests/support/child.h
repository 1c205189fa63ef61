// Child processes, started by spawn, never a fork of a test.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace baton::test {

// One running program, by default baton_test_child. It writes lines; we may write lines to it.
// Killed and reaped at the latest by the destructor.
class Child {
 public:
  // Arguments after the program name: the role and what it needs.
  explicit Child(const std::vector<std::string>& arguments);
  Child(const std::string& program, const std::vector<std::string>& arguments);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const noexcept { return pid_; }

  // The next line it writes; nullopt: none in time, or it is gone.
  std::optional<std::string> line(std::chrono::milliseconds limit = std::chrono::seconds(30));
  // Reads on to a line that begins so; everything before it is dropped.
  std::optional<std::string> line_with(const std::string& prefix,
                                       std::chrono::milliseconds limit = std::chrono::seconds(30));
  bool silent() const;                // nothing of it is left to be read
  void say(const std::string& text);  // writes a line to it
  void close_input();

  void signal(int number) const;
  // Kills it with SIGKILL and returns when it is gone.
  void kill_hard();
  // SIGSTOP; returns when the kernel says it is stopped.
  bool stop(std::chrono::milliseconds limit = std::chrono::seconds(10));
  // Waits for its end: the exit code, 128 + n for signal n, nullopt: it still runs.
  std::optional<int> exit_code(std::chrono::milliseconds limit = std::chrono::seconds(30));

  // Voluntary context switches of all its threads: how often it was woken.
  long wakes() const;

 private:
  pid_t pid_ = -1;
  int in_ = -1;   // we write
  int out_ = -1;  // we read
  std::string buffer_;
  std::optional<int> status_;
};

// The n-th word of a line, as a number; 0 if there is none.
unsigned long long number_in(const std::string& line, int n);

// How many threads this process has.
int threads_of_this_process();
// How many descriptors it has open.
int descriptors_of_this_process();

}  // namespace baton::test
