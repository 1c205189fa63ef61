#include "common/log.h"

#include <baton/spdlog.h>

#include <spdlog/sinks/stdout_color_sinks.h>

#include <memory>
#include <mutex>
#include <utility>

namespace baton::internal {

namespace {

const LogFunction& default_log() {
  static const LogFunction log = [] {
    auto logger = std::make_shared<spdlog::logger>(
        "baton", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    logger->set_level(spdlog::level::warn);
    return to_spdlog(std::move(logger));
  }();
  return log;
}

}  // namespace

LogFunction make_log(LogFunction user) {
  struct Shared {
    std::mutex mutex;
    LogFunction log;
  };
  auto shared = std::make_shared<Shared>();
  shared->log = user ? std::move(user) : default_log();
  return [shared](LogLevel level, std::string_view text) noexcept {
    try {
      const std::lock_guard guard(shared->mutex);
      shared->log(level, text);
    } catch (...) {  // NOLINT(bugprone-empty-catch): a log that fails has nowhere to say so
    }
  };
}

}  // namespace baton::internal
