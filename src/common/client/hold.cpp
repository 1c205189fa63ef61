#include "common/client/hold.h"

#include "common/base/fork_guard.h"

#include <utility>

namespace baton::internal {

Hold::Hold(Parts parts) : parts_(std::move(parts)), generation_(fork_generation()) {}

bool Hold::forked() const noexcept { return generation_ != fork_generation(); }

Errc Hold::due_loss() const noexcept {
  if (forked()) return Errc::forked;
  if (const int seen = seen_invalid_.load(std::memory_order_acquire); seen != 0) {
    return static_cast<Errc>(seen);
  }
  Errc due{};
  if (parts_.sign && parts_.sign->evicted()) {
    due = Errc::evicted;
  } else if (parts_.lease->ended() || parts_.clock->now() >= parts_.lease->deadline()) {
    due = parts_.lease->reason();
  }
  if (due != Errc{}) {
    // The first loss stays: after valid() has returned false it must never return true, even if a
    // renewal that was under way extends the lease a microsecond later.
    int none = 0;
    seen_invalid_.compare_exchange_strong(none, static_cast<int>(due), std::memory_order_acq_rel);
  }
  return due;
}

bool Hold::valid() const noexcept {
  return state_.load(std::memory_order_acquire) == kHeld && due_loss() == Errc{};
}

std::chrono::milliseconds Hold::valid_for() const noexcept {
  using std::chrono::milliseconds;
  if (!valid()) return milliseconds(0);
  const Time deadline = parts_.lease->deadline();
  if (deadline == kNever) return milliseconds::max();
  const Time now = parts_.clock->now();
  if (now >= deadline) return milliseconds(0);
  return std::chrono::duration_cast<milliseconds>(deadline - now);
}

LockState Hold::state() const noexcept {
  if (forked()) {
    return state_.load(std::memory_order_acquire) == kReleased ? LockState::released
                                                               : LockState::lost;
  }
  switch (state_.load(std::memory_order_acquire)) {
    case kLost:
      return LockState::lost;
    case kReleased:
      return LockState::released;
    default:
      break;
  }
  if (due_loss() != Errc{}) return LockState::lost;
  return parts_.clock->now() >= parts_.lease->suspect_at() ? LockState::suspect : LockState::held;
}

std::error_code Hold::lost_reason() const noexcept {
  if (state() != LockState::lost) return {};
  if (forked()) return Errc::forked;
  if (const int reason = reason_.load(std::memory_order_acquire); reason != 0) {
    return static_cast<Errc>(reason);
  }
  return due_loss();
}

bool Hold::become_lost(Errc reason) noexcept {
  int none = 0;
  // Set the reason before the state: a thread that reads "lost" must find the reason. The first
  // reason stays.
  reason_.compare_exchange_strong(none, static_cast<int>(reason), std::memory_order_acq_rel);
  int held = kHeld;
  return state_.compare_exchange_strong(held, kLost, std::memory_order_acq_rel);
}

bool Hold::become_released() noexcept {
  int held = kHeld;
  return state_.compare_exchange_strong(held, kReleased, std::memory_order_acq_rel);
}

}  // namespace baton::internal
