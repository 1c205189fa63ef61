// Parses store URLs. Pure.
#pragma once

#include <baton/result.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace baton::internal {

enum class StoreKind { memory, file, zk, etcd };

struct Endpoint {
  std::string host;  // IPv6 addresses without brackets
  std::uint16_t port = 0;
  bool operator==(const Endpoint&) const = default;
};

struct StoreUrl {
  StoreKind kind = StoreKind::memory;
  bool tls = false;                 // etcds://
  std::string memory_name;          // memory:NAME
  std::string directory;            // file:///dir, percent-decoded, absolute, no trailing '/'
  std::vector<Endpoint> endpoints;  // zk, etcd
  std::string root;                 // "" or "/a/b"
  std::uint64_t token_base = 0;     // ?token_base=N: added to every token
};

// Error(invalid_argument) names the wrong part, and never shows a password.
Result<StoreUrl> parse_url(std::string_view url);

// Removes "?token_base=N" from the end of a URL, or of the root of a channel, and returns N.
// Returns 0 if there is no "?".
Result<std::uint64_t> take_token_base(std::string_view scheme, std::string_view& text);

}  // namespace baton::internal
