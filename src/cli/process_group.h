// GroupEnder: ends a process group and finds out when it is gone.
#pragma once

#include <sys/types.h>

#include <chrono>

#include "clock.h"

namespace baton::cli {

// Ends a group: TERM at once, KILL later, until no process in it lives. Its leader must be a child
// of this process and must not have been reaped. While the leader is alive or a zombie, no other
// group gets its number, so a signal cannot reach a wrong process. GroupEnder reaps the leader at
// the end.
class GroupEnder {
 public:
  GroupEnder(pid_t group, BootClock::time_point kill_at);  // sends TERM, and CONT if it is stopped

  // Makes KILL earlier, never later.
  void kill_by(BootClock::time_point kill_at) noexcept;

  // Does what is due. True: the group is gone. False: call it again at next_step().
  bool step() noexcept;
  BootClock::time_point next_step() const noexcept;

  // Calls step() until the group is gone.
  void finish() noexcept;

 private:
  bool is_gone() noexcept;

  pid_t group_;
  BootClock::time_point kill_at_;
  std::chrono::milliseconds pause_{2};  // starts short, because most groups end quickly
  bool killed_ = false;
  bool reaped_ = false;  // the leader is reaped: the number may be reused, so send no more signals
};

// Whether a process of this group lives; zombies do not count. Reads /proc, because kill(-group, 0)
// also finds zombies, and a zombie that its parent never reaps would keep the lock without end.
enum class Living { no, yes, unknown };
Living has_living_member(pid_t group) noexcept;

}  // namespace baton::cli
