#include "support/zk_links.h"

#include <optional>
#include <string>
#include <string_view>

namespace baton::test {
namespace {

// How long a proxy waits for a server that does not listen yet. If a newly elected leader refuses
// the connection of a follower, the follower retries. If the connection is accepted and then
// closed, as a proxy does, the follower looks for another leader for ten ticks.
constexpr std::chrono::milliseconds kPatience{1000};

// Rewrites the first message of an election connection: version, server id, length,
// "127.0.0.1:port" of the sender. A server with a larger id closes a connection from a smaller id
// and connects to the address in this message, not to the address in its configuration. So the
// message must name the port of the proxy.
Proxy::Rewrite announce(std::uint16_t real, std::uint16_t proxied) {
  return [=](std::string_view so_far) -> std::optional<std::string> {
    constexpr std::size_t kHead = 8 + 8 + 4;
    if (so_far.size() < kHead) return std::nullopt;
    std::size_t size = 0;
    for (std::size_t i = 16; i < kHead; ++i) {
      size = size << 8 | static_cast<unsigned char>(so_far[i]);
    }
    if (so_far.size() < kHead + size) return std::nullopt;
    std::string address(so_far.substr(kHead, size));
    const std::string old = ":" + std::to_string(real);
    if (const auto at = address.find(old); at != address.npos) {
      address.replace(at, old.size(), ":" + std::to_string(proxied));
    }
    std::string all(so_far.substr(0, 16));
    for (int shift = 24; shift >= 0; shift -= 8) {
      all.push_back(static_cast<char>(address.size() >> shift & 0xff));
    }
    return all + address + std::string(so_far.substr(kHead + size));
  };
}

}  // namespace

ZkLinks::ZkLinks(const std::vector<Ports>& servers)
    : ServerLinks(static_cast<int>(servers.size())) {
  const int count = static_cast<int>(servers.size());
  for (int a = 0; a < count; ++a) {
    for (int b = a + 1; b < count; ++b) {
      const Ports& at_a = servers[static_cast<std::size_t>(a)];
      const Ports& at_b = servers[static_cast<std::size_t>(b)];
      Proxy& proxy = between(a, b);
      const Ports to_b{proxy.add_route(at_b.quorum, reversed(a, b), kPatience),
                       proxy.add_route(at_b.election, reversed(a, b), kPatience)};
      const Ports to_a{proxy.add_route(at_a.quorum, reversed(b, a), kPatience),
                       proxy.add_route(at_a.election, reversed(b, a), kPatience)};
      proxy.rewrite_start(to_b.election, announce(at_a.election, to_a.election));
      proxy.rewrite_start(to_a.election, announce(at_b.election, to_b.election));
      entries_[{a, b}] = to_b;
      entries_[{b, a}] = to_a;
    }
  }
}

}  // namespace baton::test
