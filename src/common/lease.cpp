#include "common/lease.h"

#include <algorithm>

namespace baton::internal {

namespace {
// Clock rates differ by at most 1 % (A2), and timers fire late by at most this much.
constexpr std::chrono::milliseconds kSlack{20};

// A server may answer anything: a lease of more than this is not believed.
constexpr std::chrono::milliseconds kLongest = std::chrono::hours(24 * 366);

std::chrono::milliseconds believable(std::chrono::milliseconds granted) {
  return std::clamp(granted, std::chrono::milliseconds(0), kLongest);
}

Nanos share(std::chrono::milliseconds whole, int part, int of) {
  return std::chrono::duration_cast<Nanos>(whole) / of * part;
}
}  // namespace

Time lease_deadline(Time sent, std::chrono::milliseconds ttl) noexcept {
  return saturating_add(sent, share(believable(ttl), 99, 100) - kSlack);
}

HeartbeatLease::HeartbeatLease(std::chrono::milliseconds granted) noexcept
    : granted_(believable(granted)) {}

std::chrono::milliseconds HeartbeatLease::interval(std::chrono::milliseconds granted) noexcept {
  return std::max(granted / 8, std::chrono::milliseconds(1));
}

void HeartbeatLease::answered(Time sent, bool write) noexcept {
  if (sent <= last_heartbeat_) return;  // late or doubled: proves nothing new
  gap_ = last_heartbeat_ == Time{} ? Nanos{} : sent - last_heartbeat_;
  last_heartbeat_ = sent;
  if (write) last_write_ = sent;
}

Time HeartbeatLease::deadline() const noexcept {
  if (last_heartbeat_ == Time{} || last_write_ == Time{}) return Time{};
  const Nanos g = std::max<Nanos>(interval(granted_), gap_);
  const Time touched = last_heartbeat_ + share(granted_, 3, 4) - g;
  const Time written = last_write_ + std::chrono::duration_cast<Nanos>(granted_);
  return std::min(touched, written) - share(granted_, 1, 100) - kSlack;
}

}  // namespace baton::internal
