// VirtualClock: a clock that moves only when advance_to() is called.
#pragma once

#include "memory/namespace.h"

#include "common/base/clock.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

namespace baton::memory {

class VirtualClock final : public Clock {
 public:
  Time now() const noexcept override { return Time(Nanos(now_.load(std::memory_order_acquire))); }
  bool real() const noexcept override { return false; }

  // A listener stays callable until remove_listener() returns.
  void add_listener(TimeListener* listener) const override {
    const std::lock_guard guard(mutex_);
    listeners_.push_back(listener);
  }
  void remove_listener(TimeListener* listener) const override {
    const std::lock_guard guard(mutex_);
    std::erase(listeners_, listener);
  }

  // Lets every listener do what is due. Twice, because the work of one listener may make work due
  // for another.
  void settle() const {
    const std::lock_guard guard(mutex_);
    for (int round = 0; round < 2; ++round) {
      for (TimeListener* listener : listeners_) listener->time_moved();
    }
  }

  // Moves the clock from event to event, up to `until`, and settles at each.
  void advance_to(Time until) {
    for (;;) {
      settle();
      Time next = until;
      {
        const std::lock_guard guard(mutex_);
        for (TimeListener* listener : listeners_) next = std::min(next, listener->next_due());
      }
      next = std::max(next, now());
      const bool last = next >= until;
      now_.store((last ? until : next).time_since_epoch().count(), std::memory_order_release);
      if (last) break;
    }
    settle();
  }

 private:
  std::atomic<std::int64_t> now_{Nanos(std::chrono::hours(1)).count()};
  mutable std::recursive_mutex mutex_;
  mutable std::vector<TimeListener*> listeners_;
};

}  // namespace baton::memory
