#include "common/seam/lease.h"

#include "common/base/mutant.h"

#include <algorithm>

namespace baton::internal {

namespace {
// Timers fire late by at most this much. (The 1 % below is for clock rates: assumption A2.)
constexpr std::chrono::milliseconds kSlack{20};

// Limit for the lease that a server grants: a faulty server may answer any number.
constexpr std::chrono::milliseconds kLongestTimeout = std::chrono::hours(24 * 366);

std::chrono::milliseconds believable(std::chrono::milliseconds granted) {
  return std::clamp(granted, std::chrono::milliseconds(0), kLongestTimeout);
}

Nanos share(std::chrono::milliseconds whole, int part, int of) {
  return std::chrono::duration_cast<Nanos>(whole) / of * part;
}
}  // namespace

Time lease_deadline(Time sent, std::chrono::milliseconds ttl) noexcept {
  return saturating_add(sent, share(believable(ttl), 99, 100) - kSlack);
}

HeartbeatLease::HeartbeatLease(std::chrono::milliseconds granted, Time born) noexcept
    : granted_(believable(granted)), touched_(born) {}

std::chrono::milliseconds HeartbeatLease::interval(std::chrono::milliseconds granted) noexcept {
  return std::max(granted / 8, std::chrono::milliseconds(1));
}

void HeartbeatLease::answered(Time sent, bool write, Time at) noexcept {
  if (sent <= last_heartbeat_) return;  // late or duplicate: proves nothing new
  if (count_ != 0) {
    // Pings come a little less often than every half tick: each round takes time, and clock rates
    // differ.
    const Time before =
        beats_[count_ - 1].sent - share(granted_, 1, 4) - share(granted_, 1, 100) - kSlack;
    for (std::size_t i = 0; i < count_; ++i) {
      if (beats_[i].answered <= before) touched_ = std::max(touched_, beats_[i].sent);
    }
  }
  if (count_ == beats_.size()) {
    // Heartbeats came faster than every h: drop the oldest, which proves least.
    std::move(beats_.begin() + 1, beats_.end(), beats_.begin());
    --count_;
  }
  beats_[count_++] = {sent, at};
  gap_ = last_heartbeat_ == Time{} ? Nanos{} : sent - last_heartbeat_;
  last_heartbeat_ = sent;
  if (write) last_write_ = sent;
}

void HeartbeatLease::reconnected(Time apart) noexcept {
  // The handshake of the new connection came after the last answer on the old connection.
  touched_ = std::max({touched_, last_heartbeat_, apart});
  count_ = 0;
}

Time HeartbeatLease::deadline() const noexcept {
  if (last_heartbeat_ == Time{} || last_write_ == Time{}) return Time{};
  const Nanos g = std::max<Nanos>(interval(granted_), gap_);
  const Time touched = last_heartbeat_ + share(granted_, 3, 4) - g;
  const Time written = last_write_ + std::chrono::duration_cast<Nanos>(granted_);
  const Time heard = mutant(Mutant::contract_rule_alone)
                         ? kNever
                         : touched_ + std::chrono::duration_cast<Nanos>(granted_);
  return std::min({touched, written, heard}) - share(granted_, 1, 100) - kSlack;
}

}  // namespace baton::internal
