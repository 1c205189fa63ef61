// Lists the server bugs that matter to locks, by version.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace baton::cli {

// The known bugs of this version of the backend's server, one sentence each. Empty: no bug is
// known, or the version cannot be parsed.
std::vector<std::string> known_bugs(std::string_view backend, std::string_view version);

}  // namespace baton::cli
