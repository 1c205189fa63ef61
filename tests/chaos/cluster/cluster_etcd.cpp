// A cluster of three etcd servers for chaos runs.
#include "chaos/cluster/cluster.h"
#include "chaos/cluster/contender.h"
#include "support/etcd_server.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;

test::EtcdOptions options() {
  test::EtcdOptions options;
  options.servers = 3;
  options.heartbeat = 50ms;
  options.election = 500ms;
  options.peer_proxies = true;
  return options;
}

// A key that goes with its lease. The lease is short: if a server fails, the lease may be granted
// twice, and the unused lease has expired before the run looks for leftovers.
class EtcdGuest : public Guest {
 public:
  EtcdGuest(test::EtcdCluster& servers, const std::function<std::string(std::int64_t)>& key)
      : servers_(servers), lease_(servers.grant(10s)), key_(key(lease_)) {
    try {
      servers_.put(key_, "", lease_);
    } catch (...) {
      end();
      throw;
    }
  }
  ~EtcdGuest() override { end(); }
  EtcdGuest(const EtcdGuest&) = delete;
  EtcdGuest& operator=(const EtcdGuest&) = delete;

  const std::string& where() const override { return key_; }
  bool there() override { return servers_.key(key_).has_value(); }
  bool leave() override {
    servers_.revoke(lease_);
    return !there();
  }

 private:
  void end() noexcept {
    try {
      servers_.revoke(lease_);
    } catch (const std::exception&) {  // the lease expires later
    }
  }

  test::EtcdCluster& servers_;
  const std::int64_t lease_;
  const std::string key_;
};

std::string hex(std::int64_t number) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%llx", static_cast<unsigned long long>(number));
  return text.data();
}

class OverEtcd : public Cluster, public EtcdUpkeep {
 public:
  std::string scheme() const override { return "etcd"; }
  std::string version() const override {
    const auto status = servers_->status(0);
    return "etcd " + (status ? status->version : "");
  }
  void compact() override { servers_->compact(); }
  void defragment(int i) override { servers_->defragment(i); }

  std::vector<InLine> in_line(int locks) override {
    std::vector<InLine> all;
    const std::string start = root() + "/lock";
    for (const auto& key : servers_->keys(start)) {
      InLine entry;
      const auto slash = key.key.find('/', start.size());
      if (slash != key.key.rfind('/')) continue;  // a key of a lock with a longer name
      entry.lock = static_cast<std::uint32_t>(std::stoul(key.key.substr(start.size())));
      entry.token = static_cast<std::uint64_t>(key.create_revision);
      entry.client = client_in(key.value);
      entry.where = key.key;
      entry.session = key.lease;
      if (entry.lock < static_cast<std::uint32_t>(locks)) all.push_back(std::move(entry));
    }
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return std::tie(a.lock, a.token) < std::tie(b.lock, b.token);
    });
    return all;
  }
  // A client may have used the name again since.
  bool remove(const InLine& entry) override {
    return servers_->remove_key(entry.where, static_cast<std::int64_t>(entry.token));
  }
  bool remove_directory(std::uint32_t) override { return true; }  // etcd has no directories
  bool end_session(const InLine& entry) override { return servers_->revoke(entry.session); }
  // Go's concurrency.Mutex names a key by the prefix and the lease.
  std::vector<std::string> peers() const override { return {"Go"}; }
  std::unique_ptr<Guest> peer_joins(std::uint32_t lock, const std::string&) override {
    return std::make_unique<EtcdGuest>(
        *servers_, [&](std::int64_t lease) { return prefix(lock) + hex(lease); });
  }
  std::unique_ptr<Guest> no_entry(std::uint32_t lock) override {
    return std::make_unique<EtcdGuest>(
        *servers_, [&](std::int64_t lease) { return prefix(lock) + "below/" + hex(lease); });
  }
  std::optional<std::uint64_t> expired_leases(int i) override {
    const double count = servers_->metric(i, "etcd_debugging_server_lease_expired_total");
    if (count < 0) throw std::runtime_error("etcd does not count the leases that it ends");
    return static_cast<std::uint64_t>(count);
  }

  std::vector<std::string> leftovers() override {
    std::vector<std::string> all;
    for (const auto& key : servers_->keys()) all.push_back("key " + key.key);
    for (const auto lease : servers_->leases()) all.push_back("lease " + std::to_string(lease));
    for (int i = 0; i < size(); ++i) {
      const auto count = servers_->watchers(i);
      if (count != 0) {
        all.push_back(std::to_string(count) + " watches at server " + std::to_string(i));
      }
    }
    return all;
  }

 private:
  test::ServerCluster& servers() const override { return *servers_; }
  std::string prefix(std::uint32_t lock) const { return root() + "/" + lock_name(lock) + "/"; }

  const std::unique_ptr<test::EtcdCluster> servers_ =
      std::make_unique<test::EtcdCluster>(options());
};

}  // namespace

std::unique_ptr<Cluster> make_etcd_cluster() { return std::make_unique<OverEtcd>(); }

}  // namespace baton::chaos
