// SHA-256 (FIPS 180-4), for names too long to keep. No Debian library offers it without pulling in
// all of a TLS stack.
#pragma once

#include <string>
#include <string_view>

namespace baton::internal {

std::string sha256_hex(std::string_view text);

}  // namespace baton::internal
