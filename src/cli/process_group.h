// Ending a process group, and knowing that it is gone.
#pragma once

#include <sys/types.h>

#include <chrono>

#include "clock.h"

namespace baton::cli {

// Ends a group: TERM at once, KILL later, until nobody in it lives. Its leader is our child and
// must not have been reaped: while it is a zombie at least, the kernel gives its number to nobody
// else, so that no signal of ours can hit a stranger. We reap it ourselves at the end.
class GroupEnder {
 public:
  GroupEnder(pid_t group, BootClock::time_point kill_at);  // sends TERM, and CONT to the stopped

  // Brings KILL forward, never back.
  void kill_by(BootClock::time_point kill_at) noexcept;

  // Does what is due. True: the group is gone. Else call again after next_step().
  bool step() noexcept;
  BootClock::time_point next_step() const noexcept;

  // Steps until it is gone.
  void finish() noexcept;

 private:
  bool is_gone() noexcept;

  pid_t group_;
  BootClock::time_point kill_at_;
  std::chrono::milliseconds pause_{2};  // grows: most groups end quickly
  bool killed_ = false;
  bool reaped_ = false;  // the leader; from here on only questions, no signals
};

// Whether a process of this group lives, zombies not counted. Reads /proc: kill(-group, 0) also
// finds zombies, and a zombie whose parent never reaps it would keep the lock for ever.
enum class Living { no, yes, unknown };
Living has_living_member(pid_t group) noexcept;

}  // namespace baton::cli
