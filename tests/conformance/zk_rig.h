// What the rigs of ZooKeeper have in common.
#pragma once

#include "conformance/fixture.h"
#include "support/proxy.h"
#include "support/zk_server.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

namespace baton::conformance {

// Started for the first case, shared by all cases of the process.
inline std::vector<std::string> zk_hosts(int servers) {
  static std::unique_ptr<test::ZkEnsemble> ensemble;
  static const std::vector<std::string> hosts = [servers] {
    std::string list;
    if (const auto given = test::zk_from_environment()) {
      list = *given;
    } else {
      test::ZkOptions options;
      options.servers = servers;
      options.tick = 500ms;
      options.max_session = 6s;  // also for the default of 10 s: crashes are waited for
      ensemble = std::make_unique<test::ZkEnsemble>(options);
      list = ensemble->hosts();
    }
    std::vector<std::string> each;
    std::istringstream text(list);
    for (std::string host; std::getline(text, host, ',');) each.push_back(host);
    return each;
  }();
  return hosts;
}

// Sessions that own nodes below this path. Asked of all servers: a node is sure to be seen only at
// the one whose client made it, others may lag behind.
inline std::vector<std::int64_t> zk_sessions_below(const std::vector<std::string>& hosts,
                                                   const std::string& path) {
  // Whoever stands last comes first: ended one after the other, nobody is granted meanwhile.
  std::map<std::string, std::int64_t> by_number;
  for (const auto& host : hosts) {
    for (const auto& [session, nodes] :
         test::parse_dump(test::four_letter(host, "dump")).ephemerals) {
      for (const auto& node : nodes) {
        if (node.starts_with(path)) by_number[node.substr(node.rfind('-'))] = session;
      }
    }
  }
  std::vector<std::int64_t> found;
  for (auto entry = by_number.rbegin(); entry != by_number.rend(); ++entry) {
    if (std::find(found.begin(), found.end(), entry->second) == found.end()) {
      found.push_back(entry->second);
    }
  }
  return found;
}

class ZkRig : public Rig {
 public:
  explicit ZkRig(int servers) : hosts_(zk_hosts(servers)), silent_(servers > 1) {
    for (const auto& host : hosts_) {
      const auto port = std::stoi(host.substr(host.rfind(':') + 1));
      proxies_.push_back(std::make_unique<test::Proxy>(static_cast<std::uint16_t>(port)));
    }
  }
  ~ZkRig() override { close_observer(); }

  std::string url() const override {
    std::string list;
    for (const auto& proxy : proxies_) list += (list.empty() ? "" : ",") + proxy->host();
    return "zk://" + list + root_;
  }
  std::string observer_url() const override {
    std::string list;
    for (const auto& host : hosts_) list += (list.empty() ? "" : ",") + host;
    return "zk://" + list + root_;
  }
  int rounds(int full) const override { return std::max(3, full / 20); }

  // The sessions that have an entry here.
  void end_sessions() override {
    const auto sessions = zk_sessions_below(hosts_, root_ + "/");
    EXPECT_FALSE(sessions.empty());
    for (const auto session : sessions) EXPECT_TRUE(test::end_session(hosts_.front(), session));
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
      proxy->cut_at_frame(test::Direction::kToClient, 1, false, test::zk_requests);
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
  static std::string fresh_root() {
    static std::atomic<int> next{0};
    return "/baton-test-" + std::to_string(getpid()) + "-" + std::to_string(next++);
  }

  const std::string root_ = fresh_root();
  const std::vector<std::string> hosts_;
  const bool silent_;
  std::chrono::nanoseconds late_until_{};
  std::vector<std::unique_ptr<test::Proxy>> proxies_;
};

inline std::unique_ptr<Rig> make_zk_rig(int servers) { return std::make_unique<ZkRig>(servers); }

}  // namespace baton::conformance
