// Hold: the state behind a Lock. Read by any thread without locks; changed once, to lost or to
// released.
#pragma once

#include <baton/lock.h>

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

// Who carries out what a Lock asks for. Implemented by the client; may be gone.
class HoldKeeper {
 public:
  virtual ~HoldKeeper() = default;
  // The hold was released by its owner: withdraw its ticket. Never waits, never throws.
  virtual void hold_released(std::shared_ptr<Hold> hold) noexcept = 0;
  // The same, and waits for the store's word. Throws Error.
  virtual void release_and_wait(std::shared_ptr<Hold> hold, std::chrono::milliseconds timeout) = 0;
  // Asks the store. Throws Error.
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

  // The user's view. noexcept, no locks; a false "valid" is remembered, so that a lease which comes
  // back a moment later cannot revive it.
  bool valid() const noexcept;
  std::chrono::milliseconds valid_for() const noexcept;
  LockState state() const noexcept;
  std::error_code lost_reason() const noexcept;
  std::stop_token lost_token() const noexcept { return stop_.get_token(); }
  bool forked() const noexcept;

  // One of these wins, once. True for the caller that changed it.
  bool become_lost(Errc reason) noexcept;
  bool become_released() noexcept;
  bool is_held() const noexcept { return state_.load(std::memory_order_acquire) == kHeld; }
  // The reason if it should be lost by now (evicted, lease over), before anybody declared it so.
  Errc due_loss() const noexcept;  // Errc{} if none

  // Tells the user. Runs user code: on the loss thread only.
  void announce_loss() noexcept { stop_.request_stop(); }

 private:
  static constexpr int kHeld = 0;
  static constexpr int kLost = 1;
  static constexpr int kReleased = 2;

  const Parts parts_;
  const std::uint64_t generation_;
  std::atomic<int> state_{kHeld};
  std::atomic<int> reason_{0};
  mutable std::atomic<int> seen_invalid_{0};  // the Errc that valid() saw first
  std::stop_source stop_;
};

// Makes Locks of Holds; the door to Lock's private constructor.
class LockMaker {
 public:
  static Lock make(std::shared_ptr<Hold> hold) noexcept { return Lock(std::move(hold)); }
  static std::shared_ptr<Hold> hold(const Lock& lock) noexcept { return lock.hold_; }
};

}  // namespace baton::internal
