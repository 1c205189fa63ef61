// Checks lock names. Pure.
#pragma once

#include <baton/result.h>

#include "common/seam/ticket.h"

#include <string>
#include <string_view>

namespace baton::internal {

// The name, or Error(invalid_name) that says why. Constant work for oversized input.
Result<LockName> parse_lock_name(std::string_view text);

// A prefix for list(): empty, or the beginning of a legal name. Error(invalid_name) otherwise.
Result<std::string> parse_name_prefix(std::string_view text);

// Makes foreign text safe to show: control and non-ASCII bytes, '"' and '\' become \xNN. Text that
// is longer than `limit` bytes is cut off and ends with "...".
std::string escape_for_message(std::string_view text, std::size_t limit = 64);

}  // namespace baton::internal
