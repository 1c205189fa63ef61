// The etcd store in a simulation: real sessions on a FakeEtcd of three members.
#pragma once

#include "etcd/path.h"
#include "etcd/session.h"
#include "etcd_sim_wire.h"
#include "fakes/session_opening.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace baton::sim {

inline constexpr const char* kEtcdRoot = "/app";
inline constexpr Nanos kElection = std::chrono::seconds(1);  // the election timeout

class EtcdPort final : public SimPort {
 public:
  EtcdPort(World& world, const PortParts& parts, etcd::FakeEtcd& etcd, EtcdMembers& members,
           const Quirks& quirks, std::chrono::milliseconds timeout)
      : loop_(parts.loop),
        wire(world, parts, etcd, members, quirks, timeout),
        timeout_(timeout),
        users_(quirks.on(Quirk::etcd_token_expiry)),
        opening_(*loop_, internal::SessionOpening::Accept::final_result,
                 [this](auto& listener, auto opened) {
                   return std::make_unique<etcd::Session>(session_parts(), listener,
                                                          std::move(opened));
                 }) {
    cluster_state_.current = static_cast<std::size_t>(world.pick(0, kMembers - 1));
  }

  void open(internal::SessionListener& listener,
            internal::Answer<std::unique_ptr<internal::Session>> answer) override {
    opening_.open(listener, std::move(answer));
  }

 private:
  etcd::SessionParts session_parts() {
    etcd::SessionParts parts;
    parts.link.loop = loop_.get();
    parts.link.transport = &wire;
    parts.link.cluster_state = &cluster_state_;
    parts.link.try_timeout =
        std::max<std::chrono::milliseconds>(timeout_ / 6, std::chrono::milliseconds(100));
    parts.link.log = [](LogLevel, std::string_view) {};
    if (users_) {
      parts.link.user = "sim";
      parts.link.password = "secret";
    }
    parts.root = kEtcdRoot;
    parts.session_timeout = timeout_;
    return parts;
  }

  std::shared_ptr<SimLoop> loop_;

 public:
  SimEtcdWire wire;

 private:
  const std::chrono::milliseconds timeout_;
  const bool users_;
  etcd::ClusterState cluster_state_;
  internal::SessionOpening opening_;
};

class EtcdSimStore final : public SimStore {
 public:
  explicit EtcdSimStore(StoreParts parts) : EtcdSimStore(parts, any_rate(parts.world)) {}
  EtcdSimStore(StoreParts parts, std::int64_t rate)
      : world_(parts.world),
        timeout_(parts.timeout),
        quirks_(parts.quirks),
        locks_(std::move(parts.locks)),
        loop_(world_, std::make_shared<Life>(), rate),
        etcd_(loop_, kMembers) {
    if (quirks_.on(Quirk::etcd_watch_lost)) {
      etcd_.loses_watch = [this] { return !healed_ && world_.chance(0.1); };
    }
    if (quirks_.on(Quirk::etcd_doubled_events)) {
      etcd_.doubles_event = [this] { return world_.chance(0.2); };
    }
    if (quirks_.on(Quirk::etcd_token_expiry)) {
      etcd_.require_users();
      etcd_.names_refused_watches = world_.chance(0.5);
      expire_tokens();
    }
  }

  std::unique_ptr<SimPort> connect(PortParts parts) override {
    auto port = std::make_unique<EtcdPort>(world_, parts, etcd_, members_, quirks_, timeout_);
    std::erase_if(ports_, [](const auto& known) { return !known.first->alive; });
    ports_.emplace_back(parts.life, port.get());
    return port;
  }

  std::vector<SimEntry> entries(const internal::LockName& lock) const override {
    const auto where = etcd::lock_prefix(kEtcdRoot, lock.text());
    std::vector<SimEntry> all;
    for (const auto& key : etcd_.keys(where)) {
      const auto* const kv = etcd_.find(key);
      all.push_back({key, static_cast<std::uint64_t>(kv->create_revision()),
                     static_cast<std::uint64_t>(kv->lease())});
    }
    std::sort(all.begin(), all.end(),
              [](const SimEntry& a, const SimEntry& b) { return a.token < b.token; });
    return all;
  }
  std::uint64_t front(const internal::LockName& lock) const override {
    auto& cached = fronts_[lock];
    if (cached.first != changes()) {
      const auto all = entries(lock);
      cached = {changes(), all.empty() ? 0 : all.front().token};
    }
    return cached.second;
  }
  void evict(const internal::LockName&, const SimEntry& entry) override { etcd_.remove(entry.id); }
  void end_session(std::uint64_t session) override {
    etcd_.revoke(static_cast<std::int64_t>(session));
  }

  bool strike() override;
  void heal() override;
  Time troubled_until() const override { return troubled_until_; }
  void ruffle() override {
    if (quirks_.on(Quirk::etcd_token_expiry)) etcd_.expire_tokens();
  }
  bool broke_promise(std::uint64_t token) const override { return broken_.contains(token); }
  Nanos grace() const override { return Nanos(timeout_) + std::chrono::seconds(20); }
  std::uint64_t wake_ups() const override { return etcd_.told; }
  std::uint64_t rolled_back_from() const override { return rolled_back_from_; }
  bool go_on() override {
    if (!quirks_.on(Quirk::etcd_set_back)) return false;
    before_ = etcd_.revision();
    for (int n = 0; n < 4; ++n) {
      etcd_.put("elsewhere");
      etcd_.remove("elsewhere");
    }
    return true;
  }
  void forget_what_went_on() override {
    rolled_back_from_ = static_cast<std::uint64_t>(etcd_.revision());
    ++rollbacks_;
    etcd_.set_back(before_);
  }
  std::string left_over(std::size_t clients) const override {
    for (const auto& key : etcd_.keys()) return "an entry is left: " + key;
    if (etcd_.watchers() != 0) return "a watch is left: " + etcd_.any_watched();
    return etcd_.leases().size() > clients ? "a lease is left" : "";
  }

  etcd::FakeEtcd& etcd() { return etcd_; }
  // The world time until which the leader keeps a lease. kNever: there is no leader. Zero: the
  // lease has ended.
  Time counted_until(std::int64_t lease) {
    if (!etcd_.led()) return internal::kNever;
    return etcd_.alive(lease) ? loop_.sim_clock().world_time(etcd_.expires(lease)) : Time{};
  }
  bool isolate(std::size_t member, Nanos span);
  bool stop(std::size_t member, Nanos span);

 private:
  std::uint64_t changes() const {
    return static_cast<std::uint64_t>(etcd_.revision()) + (rollbacks_ << 40U);
  }
  void expire_tokens() {
    world_.after(world_.span(timeout_ / 4, timeout_ * 2), [this] {
      world_.note("tokens expire");
      etcd_.expire_tokens();
      if (!healed_) expire_tokens();
    });
  }

  bool leads(std::size_t member) const;
  void elect_another(std::size_t instead_of);
  void wake(std::size_t member);
  bool set_back();

  World& world_;
  const std::chrono::milliseconds timeout_;
  const Quirks quirks_;
  const std::vector<internal::LockName> locks_;
  SimLoop loop_;
  etcd::FakeEtcd etcd_;
  EtcdMembers members_;
  std::vector<std::pair<std::shared_ptr<Life>, EtcdPort*>> ports_;
  std::map<std::int64_t, Time> stale_;  // expiry times that a stopped leader remembers
  std::set<std::uint64_t> broken_;      // tokens of entries that the store removed too early
  std::uint64_t rolled_back_from_ = 0;
  std::int64_t before_ = 0;
  std::uint64_t rollbacks_ = 0;
  bool healed_ = false;
  Time troubled_until_{};
  mutable std::map<internal::LockName, std::pair<std::uint64_t, std::uint64_t>> fronts_;
};

}  // namespace baton::sim
