// Hands baton's log lines to a spdlog logger of yours:
//   options.log = baton::to_spdlog(spdlog::default_logger());
// The only header that names spdlog; include it where spdlog is already part of your program.
#pragma once

#include <baton/options.h>

#include <spdlog/spdlog.h>

#include <functional>
#include <memory>
#include <string_view>
#include <utility>

namespace baton {

inline std::function<void(LogLevel, std::string_view)> to_spdlog(
    std::shared_ptr<spdlog::logger> logger) {
  return [logger = std::move(logger)](LogLevel level, std::string_view text) {
    constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info,
                                                     spdlog::level::warn, spdlog::level::err};
    logger->log(kLevels[static_cast<int>(level)], spdlog::string_view_t(text.data(), text.size()));
  };
}

}  // namespace baton
