#include "common/client/metrics_queue.h"

#include <chrono>

namespace baton::internal {

namespace {
constexpr std::chrono::seconds kDropLogEvery{10};
}

void MetricsQueue::post(UserCode& user_code, const MetricEvent& event, std::string lock) {
  {
    const MutexLock guard(mutex_);
    if (closed_) return;
    if (waiting_ >= kMost) {
      ++dropped_;
      if (const Time now = BootClock::now(); now >= quiet_until_) {
        quiet_until_ = now + kDropLogEvery;
        reported_ = dropped_;
        log_(LogLevel::warning, "metrics: " + std::to_string(waiting_) +
                                    " events wait for the callback thread, " +
                                    std::to_string(dropped_) +
                                    " were dropped; make handlers and ClientOptions::metrics "
                                    "return sooner");
      }
      return;
    }
    ++waiting_;
  }
  user_code.post_direct(
      [self = shared_from_this(), event, name = std::move(lock)] { self->deliver(event, name); });
}

void MetricsQueue::deliver(MetricEvent event, const std::string& lock) {
  {
    const MutexLock guard(mutex_);
    if (--waiting_ == 0 && dropped_ != reported_) {
      reported_ = dropped_;
      log_(LogLevel::warning,
           "metrics: " + std::to_string(dropped_) + " events were dropped since the client opened");
    }
    if (closed_) return;
  }
  event.lock = lock;
  sink_(event);
}

void MetricsQueue::close() noexcept {
  const MutexLock guard(mutex_);
  closed_ = true;
}

}  // namespace baton::internal
