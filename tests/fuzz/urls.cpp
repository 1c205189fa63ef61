// Fuzzes store URLs. An accepted URL has exactly one meaning. The error for a refused URL contains
// no part of the URL that may be secret.
#include <baton/error.h>
#include <baton/name.h>

#include "common/seam/url.h"
#include "fuzz.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace baton::internal {
namespace {

// The URL in its normal form.
std::string write_store(const StoreUrl& url) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  switch (url.kind) {
    case StoreKind::memory:
      return "memory:" + url.memory_name;
    case StoreKind::file: {
      std::string text = "file://";
      for (const char c : url.directory) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '/') {
          text += c;
        } else {
          text.append("%").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
        }
      }
      return text;
    }
    case StoreKind::zk:
    case StoreKind::etcd:
      break;
  }
  std::string text = url.kind == StoreKind::zk ? "zk://" : url.tls ? "etcds://" : "etcd://";
  for (const auto& endpoint : url.endpoints) {
    if (&endpoint != &url.endpoints.front()) text += ',';
    const bool v6 = endpoint.host.find(':') != std::string::npos;
    text += (v6 ? "[" + endpoint.host + "]" : endpoint.host) + ":" + std::to_string(endpoint.port);
  }
  return text + url.root;
}

std::string write(const StoreUrl& url) {
  const std::string base = std::to_string(url.token_base);
  return write_store(url) + (url.token_base == 0 ? "" : "?token_base=" + base);
}

bool same(const StoreUrl& a, const StoreUrl& b) {
  return a.kind == b.kind && a.tls == b.tls && a.memory_name == b.memory_name &&
         a.directory == b.directory && a.endpoints == b.endpoints && a.root == b.root &&
         a.token_base == b.token_base;
}

void check_accepted(const StoreUrl& url) {
  const auto again = parse_url(write(url));
  // Percent signs make the URL longer, so it may be refused because of its length.
  FUZZ_REQUIRE(again ? same(url, *again) : write(url).size() > 8192, write(url));
  if (url.kind == StoreKind::file) {
    FUZZ_REQUIRE(url.directory.size() > 1 && url.directory.front() == '/');
    FUZZ_REQUIRE(url.directory.back() != '/');
    FUZZ_REQUIRE(url.directory.find('\0') == url.directory.npos);
  }
  const bool server = url.kind == StoreKind::zk || url.kind == StoreKind::etcd;
  FUZZ_REQUIRE(server == !url.endpoints.empty() && (server || url.root.empty()));
  FUZZ_REQUIRE(url.endpoints.size() <= 64);
  FUZZ_REQUIRE(url.token_base <= std::uint64_t{1} << 62);
  for (const auto& endpoint : url.endpoints) {
    FUZZ_REQUIRE(!endpoint.host.empty() && endpoint.port != 0);
    // The host goes into the client library's list of servers, so it must not contain a character
    // that has a meaning in that list.
    FUZZ_REQUIRE(endpoint.host.find_first_of(std::string_view("/,@ []\0", 7)) == std::string::npos);
    FUZZ_REQUIRE(std::count(url.endpoints.begin(), url.endpoints.end(), endpoint) == 1);
  }
  FUZZ_REQUIRE(url.root.empty() || (url.root[0] == '/' && is_valid_name(url.root.substr(1))));
}

void check_refused(const Error& error) {
  FUZZ_REQUIRE(error.errc() == Errc::invalid_argument);
  const std::string_view what = error.what();
  FUZZ_REQUIRE(what.size() < 250 &&
               std::all_of(what.begin(), what.end(), [](char c) { return c >= 0x20 && c < 0x7f; }));
}

}  // namespace
}  // namespace baton::internal

FUZZ_TARGET(urls) {
  using namespace baton::internal;
  const auto url = parse_url(input);
  if (url) {
    check_accepted(*url);
  } else {
    check_refused(url.error());
  }
  // All text after the scheme may be secret, so no message contains it.
  const std::string secret = "Hunter2";
  const auto colon = input.find(':');
  if (colon == std::string_view::npos || input.find(secret) != std::string_view::npos) return;
  for (const std::size_t at : {colon + 1, (colon + 1 + input.size()) / 2, input.size()}) {
    auto text = std::string(input);
    text.insert(at, secret);
    const auto result = parse_url(text);
    if (!result) {
      check_refused(result.error());
      FUZZ_REQUIRE(std::string_view(result.error().what()).find(secret) == std::string_view::npos,
                   result.error().what());
    }
    // A user name in the URL of a server is refused at every position.
    const bool server = text.starts_with("zk:") || text.starts_with("etcd");
    FUZZ_REQUIRE(!result || !server || text.find('@') == std::string::npos);
  }
}
