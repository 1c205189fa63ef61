// What the rigs of etcd have in common.
#pragma once

#include "conformance/fixture.h"
#include "support/etcd_server.h"
#include "support/proxy.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace baton::conformance {

// Started for the first case, shared by all cases of the process.
inline std::vector<std::string> etcd_hosts(int servers) {
  static std::unique_ptr<test::EtcdCluster> cluster;
  static const std::vector<std::string> hosts = [servers] {
    std::string list;
    if (const auto given = test::etcd_from_environment()) {
      list = *given;
    } else {
      test::EtcdOptions options;
      options.servers = servers;
      cluster = std::make_unique<test::EtcdCluster>(options);
      list = cluster->hosts();
    }
    std::vector<std::string> each;
    std::istringstream text(list);
    for (std::string host; std::getline(text, host, ',');) each.push_back(host);
    return each;
  }();
  return hosts;
}

class EtcdRig : public Rig {
 public:
  explicit EtcdRig(int servers)
      : hosts_(etcd_hosts(servers)), store_(joined(hosts_)), silent_(servers > 1) {
    setenv("BATON_TEST_SESSION_MS", std::to_string(kSession.count()).c_str(), 1);
    for (const auto& host : hosts_) {
      const auto port = std::stoi(host.substr(host.rfind(':') + 1));
      proxies_.push_back(std::make_unique<test::Proxy>(static_cast<std::uint16_t>(port)));
    }
  }
  ~EtcdRig() override { close_observer(); }

  std::string url() const override {
    std::vector<std::string> hosts;
    for (const auto& proxy : proxies_) hosts.push_back(proxy->host());
    return "etcd://" + joined(hosts) + root_;
  }
  // Short, because crashes are waited for. Also those of child processes.
  Client open(ClientOptions options) override {
    options.session_timeout = std::min(options.session_timeout, kSession);
    return Rig::open(std::move(options));
  }
  std::string observer_url() const override { return "etcd://" + joined(hosts_) + root_; }
  int rounds(int full) const override { return std::max(3, full / 20); }

  // The leases that have a key here. Whoever stands last goes first: nobody is granted meanwhile.
  void end_sessions() override {
    auto keys = store_.keys(root_ + "/");
    EXPECT_FALSE(keys.empty());
    std::sort(keys.begin(), keys.end(),
              [](const auto& a, const auto& b) { return a.create_revision > b.create_revision; });
    std::set<std::int64_t> ended;
    for (const auto& key : keys) {
      if (key.lease == 0) continue;  // the record of a token base
      if (!ended.insert(key.lease).second) continue;
      EXPECT_TRUE(store_.revoke(key.lease));
    }
  }
  // One rig sees connections closed, the other silence.
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
  // TCP loses no single answer: the connection goes with it.
  void lose_next_answer() override {
    for (const auto& proxy : proxies_) {
      proxy->cut_at_grpc(test::Direction::kToClient, 1, false);
    }
  }
  // Those of this moment: the ones after them come with them, and then all is as before.
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

 private:
  static constexpr milliseconds kSession = 4'000ms;

  static std::string fresh_root() {
    static std::atomic<int> next{0};
    return "/baton-test-" + std::to_string(getpid()) + "-" + std::to_string(next++);
  }
  static std::string joined(const std::vector<std::string>& hosts) {
    std::string list;
    for (const auto& host : hosts) list += (list.empty() ? "" : ",") + host;
    return list;
  }

  const std::string root_ = fresh_root();
  const std::vector<std::string> hosts_;
  test::EtcdStore store_;
  const bool silent_;
  std::chrono::nanoseconds late_until_{};
  std::vector<std::unique_ptr<test::Proxy>> proxies_;
};

inline std::unique_ptr<Rig> make_etcd_rig(int servers) {
  return std::make_unique<EtcdRig>(servers);
}

}  // namespace baton::conformance
