#include "ending.h"

#include <algorithm>

namespace baton::cli {

namespace {

using std::chrono::milliseconds;

// KILL is sent this long before the deadline, because a killed process needs time to disappear.
constexpr milliseconds kKillMargin{250};
constexpr milliseconds kLongestGrace{24 * 3'600'000};  // fits the message to the guardian
constexpr milliseconds kTermPatience{500};

}  // namespace

milliseconds choose_grace(std::optional<milliseconds> asked, milliseconds timeout) noexcept {
  const milliseconds grace = asked ? *asked : std::min(timeout / 4, kMostGrace);
  if (timeout == milliseconds::max()) return std::min(grace, kLongestGrace);
  // A shorter grace would leave no time to send KILL before the deadline. With more than a third of
  // the timeout, TERM would be due between two heartbeats that are both in time.
  return std::clamp(grace, std::min<milliseconds>(2 * kKillMargin, timeout / 4), timeout / 3);
}

void EndPlan::renew(BootClock::time_point deadline) noexcept {
  if (begun_ && deadline_) deadline = std::min(deadline, *deadline_);
  deadline_ = deadline;
  if (begun_) kill_at_ = std::min(kill_at_, last_kill());
}

void EndPlan::begin(BootClock::time_point now, milliseconds grace) noexcept {
  if (begun_) return;
  begun_ = now;
  kill_at_ = now + grace;
  if (deadline_) kill_at_ = std::min(kill_at_, last_kill());
}

BootClock::time_point EndPlan::term_at() const noexcept {
  return deadline_ ? *deadline_ - grace_ : BootClock::time_point::max();
}

BootClock::time_point EndPlan::own_term_at() const noexcept {
  // Not at once: the other process may have sent TERM, and some programs exit without cleaning up
  // at a second TERM.
  return *begun_ + std::min(kTermPatience, grace_ / 4);
}

BootClock::time_point EndPlan::last_kill() const noexcept {
  return *deadline_ - std::min<BootClock::duration>(kKillMargin, grace_ / 2);
}

}  // namespace baton::cli
