// CMD's life under the lock, as baton sees it.
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

// Starts CMD through the guardian, passes signals on, lends it the terminal, follows the lock, and
// lets go of everything in the right order: CMD, guardian, lock.
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
  Fd liveness_;             // file:// only: our copy of what keeps the lock
  pid_t group_ = 0;         // 0: CMD is not there yet
  std::vector<int> early_;  // signals that came before it
  bool wants_terminal_ = false;
  bool killed_ = false;  // CMD did not end by itself: its terminal modes are undone
  bool guarded_ = true;
  EndPlan plan_;
  bool termed_ = false;        // the group got TERM, from the guardian or from us
  bool killed_group_ = false;  // it got KILL from us
  std::optional<int> exit_code_;
};

}  // namespace baton::cli
