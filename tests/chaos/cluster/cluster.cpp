#include "chaos/cluster/cluster.h"

#include <stdexcept>

namespace baton::chaos {

std::string Cluster::url(const std::vector<std::uint16_t>& ports) const {
  std::string hosts;
  for (const auto port : ports) {
    hosts += (hosts.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(port);
  }
  return scheme() + "://" + hosts + root();
}

std::vector<std::uint16_t> Cluster::ports() const {
  std::vector<std::uint16_t> all;
  all.reserve(static_cast<std::size_t>(size()));
  for (int i = 0; i < size(); ++i) all.push_back(servers().client_port(i));
  return all;
}

void Cluster::rebuild(int) { throw std::logic_error("these servers never stray"); }

std::uint32_t client_in(const std::string& data) {
  const auto at = data.find("chaos");
  if (at == std::string::npos) return 0;
  std::uint32_t number = 0;
  for (auto i = at + 5; i < data.size() && data[i] >= '0' && data[i] <= '9'; ++i) {
    number = number * 10 + static_cast<std::uint32_t>(data[i] - '0');
  }
  return number;
}

}  // namespace baton::chaos
