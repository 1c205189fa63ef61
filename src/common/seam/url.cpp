#include "common/seam/url.h"

#include "common/seam/lock_name.h"
#include "common/seam/token_base.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <optional>

namespace baton::internal {

namespace {

constexpr std::size_t kMaxUrl = 8192;
constexpr std::size_t kMaxEndpoints = 64;

// Messages show only the scheme: the rest of the URL may contain a password by mistake.
Error bad(std::string_view scheme, const std::string& what) {
  return {Errc::invalid_argument, "store URL (" + std::string(scheme) + "): " + what};
}

bool plain(char c) noexcept {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    unsigned value = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const auto [end, ec] = std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16);
    if (ec != std::errc() || end != text.data() + i + 3 || value == 0) return std::nullopt;
    out.push_back(static_cast<char>(value));
    i += 2;
  }
  return out;
}

Result<StoreUrl> parse_memory(std::string_view name) {
  if (name.size() > 200 || !std::all_of(name.begin(), name.end(), plain)) {
    return bad("memory", "the name must be at most 200 bytes of A-Z a-z 0-9 . _ -");
  }
  StoreUrl url;
  url.kind = StoreKind::memory;
  url.memory_name = std::string(name);
  return url;
}

Result<StoreUrl> parse_file(std::string_view rest) {
  if (!rest.starts_with("///")) return bad("file", "write file:///absolute/directory");
  rest.remove_prefix(2);
  if (rest.find('#') != std::string_view::npos) {
    return bad("file", "write '?' and '#' in a directory as %3F and %23");
  }
  auto path = percent_decode(rest);
  if (!path) return bad("file", "a '%' must be followed by two hex digits other than 00");
  while (path->size() > 1 && path->back() == '/') path->pop_back();
  if (*path == "/") return bad("file", "the root directory cannot be a store");
  if (path->size() > 3000) return bad("file", "the directory's path is too long");
  StoreUrl url;
  url.kind = StoreKind::file;
  url.directory = std::move(*path);
  return url;
}

Result<Endpoint> parse_endpoint(std::string_view scheme, std::string_view text) {
  std::string_view host;
  std::string_view port;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) return bad(scheme, "an IPv6 address lacks its ']'");
    host = text.substr(1, close - 1);
    if (host.find_first_not_of("0123456789abcdefABCDEF:.%") != std::string_view::npos ||
        host.find(':') == std::string_view::npos) {
      return bad(scheme, "the text in brackets is not an IPv6 address");
    }
    if (!text.substr(close + 1).starts_with(':')) return bad(scheme, "an endpoint has no port");
    port = text.substr(close + 2);
  } else {
    const auto colon = text.find(':');
    if (colon == std::string_view::npos)
      return bad(scheme, "an endpoint has no port: write host:port");
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
    if (port.find(':') != std::string_view::npos) {
      return bad(scheme, "an IPv6 address must be in brackets: [::1]:port");
    }
    if (host.empty() || host.size() > 253 || !std::all_of(host.begin(), host.end(), plain)) {
      return bad(scheme, "an endpoint has an illegal host name");
    }
  }
  unsigned number = 0;
  const auto [end, ec] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (ec != std::errc() || end != port.data() + port.size() || number == 0 || number > 65535) {
    return bad(scheme, "a port must be a number from 1 to 65535");
  }
  return Endpoint{std::string(host), static_cast<std::uint16_t>(number)};
}

Result<StoreUrl> parse_servers(StoreKind kind, std::string_view scheme, std::string_view rest) {
  if (rest.find('@') != std::string_view::npos) {
    return bad(scheme, "a URL must not contain '@'; give user and password in Credentials");
  }
  StoreUrl url;
  url.kind = kind;
  const auto slash = rest.find('/');
  std::string_view hosts = rest.substr(0, slash);
  if (hosts.empty()) return bad(scheme, "no endpoint is given: write host:port,host:port");
  while (true) {
    if (url.endpoints.size() == kMaxEndpoints) return bad(scheme, "more than 64 endpoints");
    const auto comma = hosts.find(',');
    auto endpoint = parse_endpoint(scheme, hosts.substr(0, comma));
    if (!endpoint) return endpoint.error();
    if (std::find(url.endpoints.begin(), url.endpoints.end(), *endpoint) != url.endpoints.end()) {
      return bad(scheme, "an endpoint is given twice");
    }
    url.endpoints.push_back(std::move(*endpoint));
    if (comma == std::string_view::npos) break;
    hosts.remove_prefix(comma + 1);
  }
  std::string_view root = slash == std::string_view::npos ? "" : rest.substr(slash);
  if (root == "/") root = "";
  if (!root.empty()) {
    if (!parse_lock_name(root.substr(1)).has_value()) {
      return bad(scheme, "the root must be a path of segments that are legal in a lock name");
    }
    if (kind == StoreKind::zk && (root == "/zookeeper" || root.starts_with("/zookeeper/"))) {
      return bad(scheme, "/zookeeper belongs to the server itself");
    }
  }
  url.root = std::string(root);
  return url;
}

}  // namespace

Result<std::uint64_t> take_token_base(std::string_view scheme, std::string_view& text) {
  constexpr std::string_view kKey = "token_base=";
  const auto mark = text.find('?');
  if (mark == std::string_view::npos) return std::uint64_t{0};
  std::string_view query = text.substr(mark + 1);
  text = text.substr(0, mark);
  if (query.starts_with(kKey)) {
    query.remove_prefix(kKey.size());
    if (const auto base = parse_token_base(query)) return *base;
  }
  return bad(scheme,
             "after '?' only token_base=N is allowed, with N from 0 to 2^62" +
                 std::string(scheme == "file" ? "; write a '?' in a directory as %3F" : ""));
}

namespace {

Result<StoreUrl> parse_known(std::string_view scheme, std::string_view rest) {
  if (scheme == "memory") return parse_memory(rest);
  if (scheme == "file") return parse_file(rest);
  if (!rest.starts_with("//")) return bad(scheme, "write " + std::string(scheme) + "://host:port");
  auto url =
      parse_servers(scheme == "zk" ? StoreKind::zk : StoreKind::etcd, scheme, rest.substr(2));
  if (url) url->tls = scheme == "etcds";
  return url;
}

}  // namespace

Result<StoreUrl> parse_url(std::string_view text) {
  if (text.size() > kMaxUrl) return bad("too long", "more than 8192 bytes");
  const auto colon = text.find(':');
  const std::string_view scheme = text.substr(0, colon);
  if (colon == std::string_view::npos || text.find('\0') != std::string_view::npos) {
    return bad("no scheme",
               "write memory:NAME, file:///dir, zk://host:port/root or "
               "etcd://host:port/root");
  }
  constexpr std::array<std::string_view, 5> kSchemes = {"memory", "file", "zk", "etcd", "etcds"};
  if (std::find(kSchemes.begin(), kSchemes.end(), scheme) == kSchemes.end()) {
    return bad(escape_for_message(scheme, 16),
               "unknown scheme; use memory, file, zk, etcd or etcds");
  }
  std::string_view rest = text.substr(colon + 1);
  const auto base = take_token_base(scheme, rest);
  auto url = parse_known(scheme, rest);
  if (url && !base) return base.error();
  if (url) url->token_base = *base;
  return url;
}

}  // namespace baton::internal
