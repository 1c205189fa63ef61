// Looks for a secret in a text, also in encoded forms.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace baton::test {

// The strings that reveal a secret of eight bytes or more: its first eight bytes unchanged, in hex,
// in base64 (at any position of a longer text) and percent-encoded. The encoded form of the whole
// secret begins with one of them.
std::vector<std::string> traces_of(std::string_view secret);

// The trace that the text contains; "" if it contains none.
std::string trace_in(std::string_view text, std::string_view secret);

}  // namespace baton::test
