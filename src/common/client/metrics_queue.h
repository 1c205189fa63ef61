// MetricsQueue: delivers metric events to the program.
#pragma once

#include <baton/options.h>

#include "common/client/async.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mutex.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace baton::internal {

// At most kMost events wait for the client's callback thread. When the thread is blocked (by a slow
// handler or a slow metrics function), new events are dropped and counted, and the log says so. The
// queue outlives the client as long as events wait.
class MetricsQueue : public std::enable_shared_from_this<MetricsQueue> {
 public:
  using Sink = std::function<void(const MetricEvent&)>;
  static constexpr std::size_t kMost = 10'000;

  MetricsQueue(Sink sink, LogFunction log) : sink_(std::move(sink)), log_(std::move(log)) {}

  void post(UserCode& user_code, const MetricEvent& event, std::string lock);
  // No call of the program's function starts after this, except a call that is just starting on the
  // callback thread.
  void close() noexcept;

 private:
  void deliver(MetricEvent event, const std::string& lock);

  const Sink sink_;
  const LogFunction log_;
  Mutex mutex_;
  std::size_t waiting_ BATON_GUARDED_BY(mutex_) = 0;
  std::uint64_t dropped_ BATON_GUARDED_BY(mutex_) = 0;  // dropped events in total
  std::uint64_t reported_ BATON_GUARDED_BY(mutex_) =
      0;                                         // the value of dropped_ in the last log line
  Time quiet_until_ BATON_GUARDED_BY(mutex_){};  // no second log line before this time
  bool closed_ BATON_GUARDED_BY(mutex_) = false;
};

}  // namespace baton::internal
