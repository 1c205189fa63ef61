// The ZooKeeper store in a simulation: real sessions on a ZkEnsemble.
#include "sim_zk.h"

#include "zk/path.h"

#include <algorithm>
#include <utility>

namespace baton::sim {

using namespace std::chrono_literals;

namespace {
constexpr const char* kRoot = "/app";
constexpr std::int32_t kLast = 2147483647;
}  // namespace

// ---- one client

ZkPort::ZkPort(World& world, PortParts parts, ZkEnsemble& ensemble)
    : world_(world),
      parts_(std::move(parts)),
      ensemble_(ensemble),
      opening_(*parts_.loop, internal::SessionOpening::Accept::any_result,
               [this](auto& listener, auto opened) {
                 return std::make_unique<zk::Session>(session_parts(), listener, std::move(opened));
               }) {}

zk::SessionParts ZkPort::session_parts() {
  zk::SessionParts parts;
  parts.loop = parts_.loop.get();
  parts.make_transport = [this](zk::TransportListener& l) {
    auto line = std::make_unique<SimZkLine>(world_, parts_, ensemble_, l);
    newest_ = line.get();
    return line;
  };
  parts.root = kRoot;
  parts.client_id = zk_client_id(parts_.number);
  parts.log = [](LogLevel, std::string_view) {};
  return parts;
}

// ---- the store

namespace {

class ZkSimStore final : public SimStore {
 public:
  explicit ZkSimStore(const StoreParts& parts)
      : world_(parts.world), ensemble_(parts.world, setup(parts)) {
    if (!parts.quirks.on(Quirk::zk_seq_sticky)) return;
    for (const auto& lock : parts.locks) {
      const auto left = static_cast<std::int32_t>(world_.pick(0, 40));
      ensemble_.preset(zk::lock_directory(kRoot, lock.text()), kLast - left);
    }
  }

  std::unique_ptr<SimPort> connect(PortParts parts) override {
    return std::make_unique<ZkPort>(world_, std::move(parts), ensemble_);
  }

  std::vector<SimEntry> entries(const internal::LockName& lock) const override {
    const auto where = zk::lock_directory(kRoot, lock.text());
    const auto& tree = ensemble_.truth();
    std::vector<SimEntry> all;
    for (const auto& entry : zk::make_queue(zk::fake_children_in(tree.nodes, where)).entries) {
      const auto* const node = tree.find(where + "/" + entry.name);
      all.push_back({entry.name, node->created_at, static_cast<std::uint64_t>(node->owner)});
    }
    return all;
  }
  std::uint64_t front(const internal::LockName& lock) const override {
    auto& cached = fronts_[lock];
    if (cached.first != ensemble_.truth().zxid) {
      const auto all = entries(lock);
      cached = {ensemble_.truth().zxid, all.empty() ? 0 : all.front().token};
    }
    return cached.second;
  }
  void evict(const internal::LockName& lock, const SimEntry& entry) override {
    ensemble_.remove(zk::lock_directory(kRoot, lock.text()) + "/" + entry.id);
  }
  void end_session(std::uint64_t session) override {
    ensemble_.end_session(static_cast<std::int64_t>(session));
  }

  bool strike() override {
    const auto& quirks = ensemble_.setup().quirks;
    const Nanos limit = Nanos(ensemble_.setup().tick) * ensemble_.setup().sync_limit;
    const int leads = ensemble_.leader();
    troubled_until_ = world_.now() + limit * 4;  // the longest fault and the election after it
    int server = static_cast<int>(world_.pick(0, kServers - 1));
    switch (world_.pick(0, 5)) {
      case 0:
      case 1: {
        if (!quirks.on(Quirk::zk_cut_follower) || leads < 0) return false;
        if (server == leads) server = (server + 1) % kServers;
        world_.note("follower " + std::to_string(server) + " is cut off");
        const auto which = world_.pick(0, 2);
        cut(leads, server, which != 0, which != 1, world_.span(1ms, limit * 3 / 2));
        return true;
      }
      case 2:
        if (!quirks.on(Quirk::zk_cut_leader) || leads < 0) return false;
        world_.note("leader " + std::to_string(leads) + " is cut off");
        for (int other = 0; other < kServers; ++other) {
          if (other != leads) cut(leads, other, true, true, world_.span(1ms, limit * 2));
        }
        return true;
      case 3: {
        if (ensemble_.stopped(server)) return false;
        world_.note("server " + std::to_string(server) + " is stopped");
        ensemble_.stop(server);
        world_.after(world_.span(1ms, limit * 3 / 2), [this, server] {
          if (ensemble_.stopped(server)) ensemble_.resume(server);
        });
        return true;
      }
      case 4:
        world_.note("server " + std::to_string(server) + " is restarted");
        ensemble_.restart(server);
        return true;
      default:
        world_.note("containers are reaped");
        ensemble_.reap();
        return true;
    }
  }
  Time troubled_until() const override { return troubled_until_; }
  void heal() override { ensemble_.heal(); }
  bool forced(std::uint64_t token) const override { return ensemble_.forced(token); }
  Nanos grace() const override {
    return Nanos(ensemble_.setup().tick) * (2 + 2 * ensemble_.setup().sync_limit) + 5s;
  }
  std::uint64_t wake_ups() const override { return ensemble_.told(); }
  std::string left_over(std::size_t clients) const override {
    if (!ensemble_.agree()) return "the servers disagree: the simulated ensemble is at fault";
    for (const auto& [path, node] : ensemble_.truth().nodes) {
      if (node.kind == zk::FakeNode::Kind::entry) return "an entry is left: " + path;
    }
    if (ensemble_.watches() != 0) return "a watch is left";
    return ensemble_.sessions() > clients ? "a session is left" : "";
  }

 private:
  Time troubled_until_{};
  static ZkEnsemble::Setup setup(const StoreParts& parts) {
    ZkEnsemble::Setup made;
    made.timeout = parts.timeout;
    made.tick = parts.timeout / static_cast<int>(parts.world.pick(2, 6));
    made.sync_limit = static_cast<int>(parts.world.pick(2, 5));
    made.quirks = parts.quirks;
    for (auto& rate : made.rates) rate = any_rate(parts.world);
    return made;
  }
  void cut(int a, int b, bool there, bool back, Nanos span) {
    if (there) ensemble_.stall(a, b, true);
    if (back) ensemble_.stall(b, a, true);
    world_.after(span, [this, a, b] {
      ensemble_.stall(a, b, false);
      ensemble_.stall(b, a, false);
    });
  }

  World& world_;
  ZkEnsemble ensemble_;
  mutable std::map<internal::LockName, std::pair<std::uint64_t, std::uint64_t>> fronts_;
};

}  // namespace

std::unique_ptr<SimStore> make_zk_store(StoreParts parts) {
  return std::make_unique<ZkSimStore>(parts);
}

}  // namespace baton::sim
