// to_spdlog(): gives baton's log lines to a spdlog logger of the program. The only header of baton
// that includes spdlog: include it where spdlog is already part of the program.
#pragma once

#include <baton/options.h>

#include <spdlog/spdlog.h>

#include <functional>
#include <memory>
#include <string_view>
#include <utility>

namespace baton {

// Returns a function for ClientOptions::log that writes each line to `logger`, at the level of the
// same name (debug, info, warn, err). The function shares the logger. The client calls it on its
// log thread; the logger's own level and sinks decide what is written. `logger` must not be null.
//
//   baton::ClientOptions options;
//   options.log = baton::to_spdlog(spdlog::default_logger());
//   auto client = baton::Client::connect("memory:", options);
inline std::function<void(LogLevel, std::string_view)> to_spdlog(
    std::shared_ptr<spdlog::logger> logger) {
  return [logger = std::move(logger)](LogLevel level, std::string_view text) {
    constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                     spdlog::level::warn, spdlog::level::err};
    logger->log(kLevels[static_cast<int>(level)], spdlog::string_view_t(text.data(), text.size()));
  };
}

}  // namespace baton
