// Reading passwords. They are never part of a URL, a message or a log line.
#pragma once

#include <baton/options.h>
#include <baton/result.h>

#include <string>

namespace baton::internal {

// The first line of the file, or the variable's value. Error(invalid_argument) names the file or
// the variable, never what was in it.
Result<std::string> read_password(const Credentials& credentials);

}  // namespace baton::internal
