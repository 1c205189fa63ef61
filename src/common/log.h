// Where log lines go when the program names no place of its own.
#pragma once

#include <baton/options.h>

#include <functional>
#include <string_view>

namespace baton::internal {

using LogFunction = std::function<void(LogLevel, std::string_view)>;

// The program's function, made safe: serialised, and never throwing into us. Without one: spdlog to
// stderr, warnings and up.
LogFunction make_log(LogFunction user);

}  // namespace baton::internal
