// SHA-256 (FIPS 180-4), for names that are too long to store. No Debian library offers it without
// a complete TLS library.
#pragma once

#include <string>
#include <string_view>

namespace baton::internal {

std::string sha256_hex(std::string_view text);

}  // namespace baton::internal
