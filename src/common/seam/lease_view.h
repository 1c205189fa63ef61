// LeaseView: tells any thread, without a lock, until when a session is valid.
#pragma once

#include <baton/error.h>

#include "common/base/clock.h"

#include <atomic>
#include <cstdint>

namespace baton::internal {

// One per session, shared by the session (writer, on the strand), the holds (readers, any thread)
// and the loss thread. Lock-free. The deadline is only extended; an ended lease stays ended.
class LeaseView {
 public:
  // For stores without a lease: the deadline is kNever.
  LeaseView() noexcept = default;
  LeaseView(Time suspect_at, Time deadline) noexcept { extend(suspect_at, deadline); }

  // Called when a renewal was answered. On the strand. The caller has checked that the old deadline
  // is not reached: a lease that ran out must not come back, because holds may have reported "lost"
  // already.
  void extend(Time suspect_at, Time deadline) noexcept {
    suspect_.store(suspect_at.time_since_epoch().count(), std::memory_order_release);
    deadline_.store(deadline.time_since_epoch().count(), std::memory_order_release);
  }
  // The first reason stays: a hold that has reported a reason must not report another one later.
  void end(Errc why = Errc::session_expired) noexcept {
    int none = 0;
    ended_.compare_exchange_strong(none, static_cast<int>(why), std::memory_order_acq_rel);
  }

  bool ended() const noexcept { return ended_.load(std::memory_order_acquire) != 0; }
  // Why the lease ended; session_expired if end() was not called.
  Errc reason() const noexcept {
    const int why = ended_.load(std::memory_order_acquire);
    return why == 0 ? Errc::session_expired : static_cast<Errc>(why);
  }
  Time deadline() const noexcept { return Time(Nanos(deadline_.load(std::memory_order_acquire))); }
  Time suspect_at() const noexcept { return Time(Nanos(suspect_.load(std::memory_order_acquire))); }

 private:
  static constexpr std::int64_t kMax = Nanos::max().count();
  std::atomic<std::int64_t> suspect_{kMax};
  std::atomic<std::int64_t> deadline_{kMax};
  std::atomic<int> ended_{0};  // an Errc; 0: not yet
};

}  // namespace baton::internal
