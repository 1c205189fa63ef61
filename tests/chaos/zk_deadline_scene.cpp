#include "chaos/zk_deadline_scene.h"

#include "history/holds.h"
#include "support/boot_clock.h"
#include "support/eventually.h"

#include <baton/baton.h>

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::boot_now;
using test::eventually;

Client connect(const std::string& hosts, const std::string& root, const std::string& label) {
  ClientOptions options;
  options.session_timeout = kTimeout;
  options.connect_timeout = 20s;
  options.label = label;
  options.log = [](LogLevel, std::string_view) {};  // no log lines about the cuts
  return Client::connect("zk://" + hosts + root, options);
}

// Acquires its own lock and keeps it, with its own session.
class Holder {
 public:
  Holder(const std::string& hosts, const std::string& root, const std::string& name)
      : client_(connect(hosts, root, "holder")),
        lock_(client_.mutex(name).acquire({.timeout = 20s})),
        begin_(boot_now()),
        node_(root + "/" + name + "/" + client_.inspect(name).entries.at(0).id) {}

  bool valid() const { return lock_.valid(); }
  bool was_told() const { return lock_.lost_token().stop_requested(); }
  history::Hold hold(const Verdict& verdict) const {
    return {begin_, verdict.until, lock_.token()};
  }
  Believer believer() const {
    return {node_, [this]() -> std::optional<nanoseconds> {
              if (!lock_.valid()) return std::nullopt;
              return lock_.valid_for() + 1ms;  // valid_for() rounds down
            }};
  }

 private:
  Client client_;
  Lock lock_;
  nanoseconds begin_;
  std::string node_;
};

// Waits for a lock, and keeps it.
class Next {
 public:
  Next(Client& client, const std::string& name) {
    client.mutex(name).acquire_async({}, [state = state_](Result<Lock> result) {
      if (!result) return;  // the client was closed after a failure
      const std::lock_guard guard(state->mutex);
      state->begin = boot_now();
      state->lock = std::move(result).value();
    });
  }
  bool granted() const {
    const std::lock_guard guard(state_->mutex);
    return state_->lock.token() != 0;
  }
  // The hold up to now.
  history::Hold hold() const {
    const std::lock_guard guard(state_->mutex);
    return {state_->begin, boot_now(), state_->lock.token()};
  }

 private:
  struct State {
    std::mutex mutex;
    nanoseconds begin{};
    Lock lock;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

// Returns a root that no earlier run has used.
std::string fresh_root() {
  static int next = 0;
  return "/deadline-" + std::to_string(next++);
}

std::string name(int i) { return "lock" + std::to_string(i); }

// Holders, and one waiter behind each of them.
struct Cast {
  std::string root = fresh_root();
  std::unique_ptr<Client> next_client;
  std::vector<std::unique_ptr<Holder>> holders;
  std::vector<std::unique_ptr<Next>> nexts;

  bool all_hold() const {
    return std::all_of(holders.begin(), holders.end(), [](const auto& h) { return h->valid(); });
  }
  bool all_in_line() const {
    for (int i = 0; i < static_cast<int>(holders.size()); ++i) {
      if (next_client->inspect(name(i)).entries.size() != 2) return false;
    }
    return true;
  }
};

constexpr int kMostCasts = 5;

// Returns nullptr if a holder lost its lock before the cut because the machine did not run it.
std::unique_ptr<Cast> make_cast(const std::string& victim, const Setting& setting) {
  auto cast = std::make_unique<Cast>();
  cast->next_client = std::make_unique<Client>(connect(setting.majority, cast->root, "next"));
  for (int i = 0; i < setting.holders; ++i) {
    const auto evenly = kHeartbeat * i / setting.holders;
    wait_for_phase(setting.heartbeats ? setting.heartbeats(i) : evenly, kHeartbeat);
    cast->holders.push_back(std::make_unique<Holder>(victim, cast->root, name(i)));
  }
  for (int i = 0; i < setting.holders; ++i) {
    cast->nexts.push_back(std::make_unique<Next>(*cast->next_client, name(i)));
  }
  EXPECT_TRUE(eventually("a waiter in each line",
                         [&] { return !cast->all_hold() || cast->all_in_line(); }));
  return cast->all_hold() ? std::move(cast) : nullptr;
}

}  // namespace

std::unique_ptr<test::ZkEnsemble> ZkDeadline::zk_;

void ZkDeadline::SetUpTestSuite() {
  if (zk_ || !test::zk_installed()) return;
  test::ZkOptions options;
  options.servers = 3;
  options.peer_proxies = true;
  options.tick = kTick;
  zk_ = std::make_unique<test::ZkEnsemble>(options);
}

void ZkDeadline::SetUp() {
  if (!zk_) GTEST_SKIP() << "no ZooKeeper on this machine";
}

void ZkDeadline::TearDown() {
  if (zk_) zk_->heal_all();
}

std::string ZkDeadline::all_but(int server) {
  std::string hosts;
  for (int i = 0; i < zk().size(); ++i) {
    if (i != server) hosts += (hosts.empty() ? "" : ",") + zk().host(i);
  }
  return hosts;
}

void ZkDeadline::trial(int run, const Setting& setting, Margins& margins) {
  if (setting.before) setting.before();

  std::unique_ptr<Cast> cast;
  for (int i = 0; i < kMostCasts && !cast && !HasFailure(); ++i) {
    cast = make_cast(zk().host(setting.victim), setting);
  }
  ASSERT_TRUE(cast) << "the machine is too busy for locks of this timeout";
  const std::string& root = cast->root;
  auto& holders = cast->holders;
  const auto& nexts = cast->nexts;
  std::vector<Believer> believers;
  for (const auto& holder : holders) believers.push_back(holder->believer());
  std::unique_ptr<test::ZkTestClient> naive;
  if (setting.naive) {
    naive = std::make_unique<test::ZkTestClient>(zk().host(setting.victim), kTimeout);
    ASSERT_EQ(naive->create(root + "/naive", "", ZOO_EPHEMERAL), ZOK);
    believers.push_back({root + "/naive", [&naive]() -> std::optional<nanoseconds> {
                           if (!naive->connected()) return std::nullopt;
                           return 0ns;
                         }});
  }

  auto watch = std::make_unique<Trial>(believers, setting.majority);
  setting.cut([&] {
    nanoseconds longest{};
    for (std::size_t i = 0; i < holders.size(); ++i) {
      longest = std::max(longest, believers[i].belief().value_or(0ns));
    }
    return longest;
  });
  const nanoseconds cut = boot_now();
  ASSERT_TRUE(eventually(
      "all nodes gone", [&] { return watch->all_gone(); }, 60s));
  ASSERT_TRUE(eventually("all locks granted again", [&] {
    return std::all_of(nexts.begin(), nexts.end(), [](const auto& n) { return n->granted(); });
  }));
  // The holders should have stopped believing long before. If they have not, this measures how late
  // they are.
  EXPECT_TRUE(eventually(
      "the holders to stop believing", [&] { return watch->ended(holders.size()); }, kTimeout));
  const auto verdicts = watch->verdicts();
  std::vector<double> found;
  double until = 0;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    const Verdict& verdict = verdicts[i];
    SCOPED_TRACE("run " + std::to_string(run) + ", holder " + std::to_string(i));
    EXPECT_FALSE(verdict.came_back);
    EXPECT_TRUE(eventually(
        "to be told of the loss", [&] { return holders[i]->was_told(); }, 1s));
    EXPECT_TRUE(history::exclusive_and_ordered({holders[i]->hold(verdict), nexts[i]->hold()}));
    // This holder lost its lock during the stall and removed its node itself.
    if (setting.stalls && verdict.until < cut) continue;
    EXPECT_GT(verdict.until, cut);
    EXPECT_GT(verdict.margin_ms(), 0);
    found.push_back(verdict.margin_ms());
    until = std::max(until, std::chrono::duration<double>(verdict.until - cut).count());
  }
  char aside[160];
  int used = std::snprintf(aside, sizeof aside, "; valid for up to %.2f s after the cut", until);
  if (setting.naive) {
    // The same check on a client without a deadline must find that it believes too long.
    const auto naive_margin = [&] { return watch->verdicts().back().margin_ms(); };
    EXPECT_TRUE(eventually(
        "a second of wrong belief", [&] { return naive_margin() < -1000; }, 2s))
        << "the check sees nothing";
    std::snprintf(aside + used, sizeof aside - static_cast<std::size_t>(used),
                  "; who trusts his connection: %.0f ms and believes on", naive_margin());
  }
  margins.add(run, found, aside);

  watch.reset();  // its threads ask the holders
  zk().heal_all();
  zk().wait_synced();
  std::vector<std::jthread> closing;  // each close may take seconds
  for (auto& holder : holders) closing.emplace_back([&holder] { holder.reset(); });
}

}  // namespace baton::chaos
