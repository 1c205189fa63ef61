// The common part of the rigs for clusters. Clients connect through one proxy for each server, so
// that a test can cut them off. The observer connects directly.
#pragma once

#include "conformance/fixture.h"
#include "support/proxy.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace baton::conformance {

// Returns the servers of `given`. Without `given` it returns the servers of a new Cluster: the
// first case starts it, and all cases of the process share it.
template <class Cluster, class Options>
const std::vector<std::string>& shared_hosts(const std::optional<std::string>& given,
                                             const Options& options) {
  static const auto own = given ? nullptr : std::make_unique<Cluster>(options);
  static const std::vector<std::string> hosts = [&] {
    std::vector<std::string> each;
    std::istringstream text(given ? *given : own->hosts());
    for (std::string host; std::getline(text, host, ',');) each.push_back(host);
    return each;
  }();
  return hosts;
}

inline std::string joined(const std::vector<std::string>& hosts) {
  std::string list;
  for (const auto& host : hosts) list += (list.empty() ? "" : ",") + host;
  return list;
}

class ClusterRig : public Rig {
 public:
  // scheme: for example "zk://". silent: cut() drops all data but leaves the connections open.
  // Otherwise cut() closes them.
  ClusterRig(std::string scheme, std::vector<std::string> hosts, bool silent)
      : scheme_(std::move(scheme)), hosts_(std::move(hosts)), silent_(silent) {
    for (const auto& host : hosts_) {
      const auto port = std::stoi(host.substr(host.rfind(':') + 1));
      proxies_.push_back(std::make_unique<test::Proxy>(static_cast<std::uint16_t>(port)));
    }
  }
  ~ClusterRig() override { close_observer(); }

  std::string url() const override {
    std::vector<std::string> hosts;
    for (const auto& proxy : proxies_) hosts.push_back(proxy->host());
    return scheme_ + joined(hosts) + root_;
  }
  std::string observer_url() const override { return scheme_ + joined(hosts_) + root_; }
  int rounds(int full) const override { return std::max(3, full / 20); }

  void cut() override {
    for (const auto& proxy : proxies_) {
      if (silent_) {
        proxy->blackhole(test::Direction::kToServer);
        proxy->blackhole(test::Direction::kToClient);
      } else {
        proxy->cut();
      }
    }
  }
  void heal() override {
    for (const auto& proxy : proxies_) proxy->heal();
  }
  // TCP cannot lose a single answer, so the connection is closed with it.
  void lose_next_answer() override {
    for (const auto& proxy : proxies_) cut_at_answer(*proxy);
  }
  // A proxy cannot delay a single answer, so it delays all answers during this time. Then tick()
  // ends the delay, and the proxy delivers all of them at once.
  void delay_next_answer(milliseconds by) override {
    for (const auto& proxy : proxies_) proxy->delay(test::Direction::kToClient, by);
    late_until_ = now() + by;
  }
  void tick() override {
    Rig::tick();
    if (late_until_ == std::chrono::nanoseconds{} || now() < late_until_) return;
    late_until_ = {};
    for (const auto& proxy : proxies_) proxy->delay(test::Direction::kToClient, 0ms);
  }

 protected:
  // Cuts the connection instead of delivering the next answer to a client.
  virtual void cut_at_answer(test::Proxy& proxy) = 0;
  const std::string& root() const { return root_; }
  const std::vector<std::string>& hosts() const { return hosts_; }

 private:
  static std::string fresh_root() {
    static std::atomic<int> next{0};
    return "/baton-test-" + std::to_string(getpid()) + "-" + std::to_string(next++);
  }

  const std::string scheme_;
  const std::string root_ = fresh_root();
  const std::vector<std::string> hosts_;
  const bool silent_;
  std::chrono::nanoseconds late_until_{};
  std::vector<std::unique_ptr<test::Proxy>> proxies_;
};

}  // namespace baton::conformance
