// Looks for a secret in a text, also in other clothes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace baton::test {

// What gives a secret of eight bytes or more away: its first eight bytes as they are, in hex, in
// base64 (at any place of a longer text) and percent-encoded. Whole ones begin with these.
std::vector<std::string> traces_of(std::string_view secret);

// The trace that is in the text; "" if none is.
std::string trace_in(std::string_view text, std::string_view secret);

}  // namespace baton::test
