// Runner: runs CMD while baton holds the lock.
#pragma once

#include <baton/client.h>
#include <baton/lock.h>

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "args.h"
#include "clock.h"
#include "ending.h"
#include "fd.h"
#include "guardian.h"
#include "signals.h"
#include "terminal.h"

namespace baton::cli {

// Starts CMD through the guardian, sends signals on to it, gives it the terminal and checks the
// lock. When CMD has ended, it dismisses the guardian and then releases the lock.
class Runner {
 public:
  Runner(const Args& args, Client& client, Lock lock, Guardian guardian,
         const SignalReader& signals, const Terminal& terminal);

  int run();  // the exit code

 private:
  SessionInfo ask_session() const;
  void start_job();
  void read_guardian();
  void handle(const Message& message);
  void handle_signal(int signal);
  void handle_stop(int signal);
  void resume_job();
  void check_lock();
  void send_deadline();
  void begin_end(const std::string& why);
  void end_job();
  BootClock::time_point next_step() const;
  void guardian_died();
  int exec_failed(int error_number) const;
  void release(int& exit_code);

  const Args& args_;
  Client& client_;
  Lock lock_;
  Guardian guardian_;
  const SignalReader& signals_;
  const Terminal& terminal_;
  const Bell lost_bell_;

  bool has_lease_ = false;
  std::chrono::milliseconds grace_{};
  std::chrono::milliseconds tick_{};
  Fd liveness_;             // file:// only: baton's copy of the descriptor that keeps the lock
  pid_t group_ = 0;         // 0: CMD is not started yet
  std::vector<int> early_;  // signals that came before CMD was started
  bool wants_terminal_ = false;
  bool killed_ = false;  // CMD did not end by itself, so its terminal modes must be reset
  bool guarded_ = true;
  EndPlan plan_;
  bool termed_ = false;        // the guardian or baton has sent TERM to the group
  bool killed_group_ = false;  // baton has sent KILL to the group
  std::optional<int> exit_code_;
};

}  // namespace baton::cli
