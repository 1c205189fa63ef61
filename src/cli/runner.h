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
  void start_job();
  void read_guardian();
  void handle(const Message& message);
  void handle_signal(int signal);
  void handle_stop(int signal);
  void resume_job();
  void check_lock();
  void send_deadline();
  void lost(const std::string& why);
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
  pid_t group_ = 0;         // 0: CMD is not there yet
  std::vector<int> early_;  // signals that came before it
  bool wants_terminal_ = false;
  bool killed_ = false;  // CMD did not end by itself: its terminal modes are undone
  bool guarded_ = true;
  std::optional<BootClock::time_point> give_up_at_;  // the group is being ended; then we do it
  std::optional<int> exit_code_;
};

}  // namespace baton::cli
