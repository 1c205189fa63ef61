// Base64, which carries bytes in JSON.
#pragma once

#include <string>
#include <string_view>

namespace baton::test {

std::string to_base64(std::string_view bytes);
// Decodes up to the first character that is not a base64 digit.
std::string from_base64(std::string_view text);

}  // namespace baton::test
