#include "support/server_links.h"

#include <algorithm>
#include <stdexcept>

namespace baton::test {

void ServerLink::stall() const {
  stall(a_);
  stall(b_);
}

void ServerLink::blackhole() const {
  blackhole(a_);
  blackhole(b_);
}

Direction ServerLink::direction(int from) const {
  if (from != a_ && from != b_) throw std::invalid_argument("link: not one of its servers");
  return from == a_ ? Direction::kToServer : Direction::kToClient;
}

ServerLinks::ServerLinks(int servers) {
  for (int a = 0; a < servers; ++a) {
    for (int b = a + 1; b < servers; ++b) proxies_[{a, b}] = std::make_unique<Proxy>();
  }
}

Proxy& ServerLinks::between(int a, int b) const {
  return *proxies_.at({std::min(a, b), std::max(a, b)});
}

ServerLink ServerLinks::link(int a, int b) const {
  return {between(a, b), std::min(a, b), std::max(a, b)};
}

std::vector<ServerLink> ServerLinks::links_of(int server) const {
  std::vector<ServerLink> all;
  for (const auto& [pair, proxy] : proxies_) {
    if (pair.first == server || pair.second == server) all.push_back(link(pair.first, pair.second));
  }
  return all;
}

void ServerLinks::heal_all() const {
  for (const auto& [pair, proxy] : proxies_) proxy->heal();
}

}  // namespace baton::test
