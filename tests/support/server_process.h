// A server program as a child process that cannot outlive the test.
#pragma once

#include <sys/types.h>

#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace baton::test {

// Started, killed, paused and started again. All calls from any thread.
//
// The kernel kills it when the test process ends, however that happens. That death signal belongs
// to the thread that started the child, so one thread that never ends starts them all. The child
// inherits no descriptors: a client's socket in it would stay open after the client closed it.
class ServerProcess {
 public:
  // The program is searched in PATH. Its output is appended to the log file. Does not start it.
  ServerProcess(std::vector<std::string> command, std::string log);
  ~ServerProcess();  // kills
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  void start();   // nothing if it runs
  void kill();    // SIGKILL; returns when it is gone
  void pause();   // SIGSTOP; returns when the kernel says it is stopped
  void resume();  // SIGCONT

  bool running();       // it has not ended; paused counts
  bool paused() const;  // by pause()
  pid_t pid() const;    // -1: not running

  const std::string& log() const noexcept { return log_; }
  // The last lines of the log, and how it ended if it has.
  std::string tail(int lines = 25);
  bool log_contains(const std::string& text) const;

 private:
  bool reap();  // mutex held; true: it runs

  const std::vector<std::string> command_;
  const std::string log_;
  mutable std::mutex mutex_;
  pid_t pid_ = -1;
  bool paused_ = false;
  std::optional<int> status_;  // of the last one that ended
};

}  // namespace baton::test
