// Store URLs. Pure.
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
};

// Error(invalid_argument) names the part that is wrong, and never shows a password.
Result<StoreUrl> parse_url(std::string_view url);

}  // namespace baton::internal
