// Hold: the state behind a Lock. Any thread reads it without a mutex. It changes once, to lost or
// to released.
#pragma once

#include <baton/lock.h>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/seam/lease_view.h"
#include "common/seam/ticket.h"
#include "common/base/unique_function.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <system_error>

namespace baton::internal {

class Hold;

// Does what a Lock requests. Implemented by the client, which may be destroyed before the Lock.
class HoldKeeper {
 public:
  virtual ~HoldKeeper() = default;
  // The hold was released by its owner: withdraw its ticket. Never waits, never throws.
  virtual void withdraw_hold(std::shared_ptr<Hold> hold) noexcept = 0;
  // Like withdraw_hold(), but waits until the store has confirmed. Throws Error.
  virtual void release_and_wait(std::shared_ptr<Hold> hold, std::chrono::milliseconds timeout) = 0;
  // Asks the store whether the lock is still held. Throws Error if not, or if there is no answer.
  virtual void verify_and_wait(std::shared_ptr<Hold> hold, std::chrono::milliseconds timeout) = 0;
};

class Hold {
 public:
  struct Parts {
    LockName name;
    Nonce nonce;
    std::uint64_t token;
    const Clock* clock;
    std::shared_ptr<LeaseView> lease;
    std::shared_ptr<const TicketSign> sign;  // may be null
    std::weak_ptr<HoldKeeper> keeper;
    Time since;
  };
  explicit Hold(Parts parts);

  const LockName& name() const noexcept { return parts_.name; }
  Nonce nonce() const noexcept { return parts_.nonce; }
  std::uint64_t token() const noexcept { return parts_.token; }
  Time since() const noexcept { return parts_.since; }
  const LeaseView& lease() const noexcept { return *parts_.lease; }
  std::shared_ptr<HoldKeeper> keeper() const noexcept { return parts_.keeper.lock(); }

  // What the user sees. Lock-free. Once the hold was seen as invalid it stays invalid, so that a
  // lease that is extended a moment later cannot revive it.
  bool valid() const noexcept;
  std::chrono::milliseconds valid_for() const noexcept;
  LockState state() const noexcept;
  std::error_code lost_reason() const noexcept;
  std::stop_token lost_token() const noexcept { return stop_.get_token(); }
  bool forked() const noexcept;

  // Only the first of these calls changes the state. It returns true, all others return false.
  bool become_lost(Errc reason) noexcept;
  bool become_released() noexcept;
  bool is_held() const noexcept { return state_.load(std::memory_order_acquire) == kHeld; }
  // The reason why the hold must be declared lost (evicted, lease ended), also before
  // become_lost().
  Errc due_loss() const noexcept;  // Errc{} if none

  // Requests stop on lost_token(). Runs stop callbacks of the program, so call it only on the loss
  // thread.
  void announce_loss() noexcept {
    BATON_ASSERT(state_.load(std::memory_order_acquire) == kLost);
    stop_.request_stop();
  }

 private:
  static constexpr int kHeld = 0;
  static constexpr int kLost = 1;
  static constexpr int kReleased = 2;

  const Parts parts_;
  const std::uint64_t generation_;
  std::atomic<int> state_{kHeld};
  std::atomic<int> reason_{0};
  mutable std::atomic<int> seen_invalid_{0};  // the first Errc of due_loss()
  std::stop_source stop_;
};

// Makes Locks from Holds, through the private constructor of Lock.
class LockMaker {
 public:
  static Lock make(std::shared_ptr<Hold> hold) noexcept { return Lock(std::move(hold)); }
  static std::shared_ptr<Hold> hold(const Lock& lock) noexcept { return lock.hold_; }
};

}  // namespace baton::internal
