// Reads passwords. A password is never part of a URL, a message or a log line.
#pragma once

#include <baton/options.h>
#include <baton/result.h>

#include <string>

namespace baton::internal {

// Returns the first line of the password file, or the value of the environment variable.
// Error(invalid_argument) names the file or the variable, never its content.
Result<std::string> read_password(const Credentials& credentials);

}  // namespace baton::internal
