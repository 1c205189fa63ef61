// Server bugs that matter to locks, by version.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace baton::cli {

// What is known to go wrong on this version of this backend's server, one sentence each. Empty:
// nothing known, or a version we cannot read.
std::vector<std::string> known_bugs(std::string_view backend, std::string_view version);

}  // namespace baton::cli
