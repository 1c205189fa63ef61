// A server program as a child process that never outlives the test.
#pragma once

#include <sys/types.h>

#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace baton::test {

// A process that can be started, killed, paused and started again. Any thread may make any call.
//
// The kernel kills the child when the test process ends for any reason. That death signal belongs
// to the thread that started the child, so one thread that never ends starts all children. The
// child inherits no descriptors: a client's socket would stay open in the child after the client
// closed it.
class ServerProcess {
 public:
  // The program is searched in PATH. Its output is appended to the log file. The constructor does
  // not start it.
  ServerProcess(std::vector<std::string> command, std::string log);
  ~ServerProcess();  // kills the process
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  void start();   // does nothing if it runs
  void kill();    // SIGKILL; returns when the process is gone
  void pause();   // SIGSTOP; returns when the kernel reports the stop
  void resume();  // SIGCONT

  bool running();       // it has not ended; also true if paused
  bool paused() const;  // stopped by pause()
  pid_t pid() const;    // -1: not running

  const std::string& log() const noexcept { return log_; }
  // The last lines of the log, and how the process ended if it has ended.
  std::string tail(int lines = 25);
  bool log_contains(const std::string& text) const;

 private:
  bool reap();  // the caller holds the mutex; true: the process runs

  const std::vector<std::string> command_;
  const std::string log_;
  mutable std::mutex mutex_;
  pid_t pid_ = -1;
  bool paused_ = false;
  std::optional<int> status_;  // of the last process that ended
};

}  // namespace baton::test
