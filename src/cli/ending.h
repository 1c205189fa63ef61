// EndPlan: decides when CMD's process group is ended. Baton and its guardian each follow the same
// plan. If one of them does not run (stopped, starved, swapped out), the other one acts in time.
#pragma once

#include <chrono>
#include <optional>

#include "clock.h"

namespace baton::cli {

// How long one of the two waits for the other before it acts alone.
inline constexpr std::chrono::milliseconds kPatience{2'000};
// The longest grace without --grace.
inline constexpr std::chrono::milliseconds kMostGrace{5'000};

// The time between TERM and KILL. timeout is the session's; max(): a store without a lease.
std::chrono::milliseconds choose_grace(std::optional<std::chrono::milliseconds> asked,
                                       std::chrono::milliseconds timeout) noexcept;

// TERM one grace before the lock's deadline, or when the lock is lost; KILL one grace later, and in
// any case before the deadline.
class EndPlan {
 public:
  void set_grace(std::chrono::milliseconds grace) noexcept { grace_ = grace; }

  // The lock's deadline as it is known now. Once the end has begun, only an earlier one counts.
  void renew(BootClock::time_point deadline) noexcept;

  // The end begins: TERM now. A second call changes nothing.
  void begin(BootClock::time_point now) noexcept { begin(now, grace_); }
  void begin(BootClock::time_point now, std::chrono::milliseconds grace) noexcept;
  bool begun() const noexcept { return begun_.has_value(); }

  bool has_deadline() const noexcept { return deadline_.has_value(); }
  // When the end has to begin; max(): there is no deadline.
  BootClock::time_point term_at() const noexcept;
  // When this process sends TERM if the other one has not. These three need begin() first.
  BootClock::time_point own_term_at() const noexcept;
  BootClock::time_point kill_at() const noexcept { return kill_at_; }
  // When this process stops waiting for the other one to report the end of the group.
  BootClock::time_point give_up_at() const noexcept { return kill_at_ + kPatience; }

 private:
  BootClock::time_point last_kill() const noexcept;

  std::chrono::milliseconds grace_{};
  std::optional<BootClock::time_point> deadline_;
  std::optional<BootClock::time_point> begun_;
  BootClock::time_point kill_at_{};
};

}  // namespace baton::cli
