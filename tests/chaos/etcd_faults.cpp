// Servers and clients die, stop and come back while a crowd acquires locks continuously. No two
// holds may overlap, tokens must rise, no key and no lease may be left, and all clients must
// continue.
#include "chaos/etcd_faults.h"

#include "chaos/server_faults.h"
#include "support/etcd_fate.h"
#include "support/eventually.h"

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace baton::chaos {

using namespace std::chrono_literals;
using test::eventually;
using test::kLong;
using test::Stopwatch;

FaultyStore store_of(const test::EtcdCluster& etcd, std::chrono::milliseconds ttl) {
  FaultyStore store{"etcd", {}, ttl, kEtcdGrace};
  for (int i = 0; i < etcd.size(); ++i) store.ports.push_back(etcd.client_port(i));
  return store;
}

std::unique_ptr<test::EtcdCluster> EtcdFaults::etcd_;

void EtcdFaults::SetUpTestSuite() {
  if (etcd_ || !test::etcd_installed()) return;
  test::EtcdOptions options;
  options.servers = 3;
  options.peer_proxies = true;
  etcd_ = std::make_unique<test::EtcdCluster>(options);
}

void EtcdFaults::SetUp() {
  if (!etcd_) GTEST_SKIP() << "no etcd on this machine";
}

void EtcdFaults::TearDown() {
  if (!etcd_) return;
  EXPECT_TRUE(leases_settle(0)) << "after all clients were closed";
  for (const auto& key : etcd_->keys()) ADD_FAILURE() << "left behind: " << key.key;
}

Client EtcdFaults::connect(const std::string& root, const std::string& label) {
  return connect_quietly(store().url(store().hosts(), root), kEtcdTtl, label);
}

::testing::AssertionResult EtcdFaults::leases_settle(std::size_t count) {
  std::size_t now = 0;
  auto result = test::eventually_with(
      std::to_string(count) + " leases", 2 * kEtcdTtl + kEtcdGrace,
      [&] {
        now = etcd().leases().size();
        return now == count;
      },
      [] { std::this_thread::sleep_for(50ms); });
  if (!result) result << ", and there are " << now;
  return result;
}

namespace {

// etcd#15247 (docs/stores/etcd.md lists the versions): a leader that was stopped and resumes
// revokes leases that expired by its own clock, although the new leader has seen them renewed. The
// store then frees a lock too early, and no client can prevent it: the next client is granted the
// lock before the old holder's deadline, or while the answer that grants the lock is under way.
// Then the promise for a forced release applies: the old holder is told within a second.
//
// A conflict counts as this bug only with proof: it began after the old leader resumed, the hold
// was reported lost, and one revision removed all keys of its lease. Only the test that stops a
// leader accepts it.
void expect_revoked(test::EtcdStore& etcd, const std::string& prefix,
                    const history::Conflict& conflict, std::chrono::nanoseconds leader_back) {
  const bool behind = conflict.later->token < conflict.earlier->token;
  const history::Hold& late = *(behind ? conflict.later : conflict.earlier);
  const history::Hold& next = *(behind ? conflict.earlier : conflict.later);
  EXPECT_LT(late.token, next.token) << "a token was granted twice";
  EXPECT_EQ(late.ending, history::Ending::lost) << conflict;
  EXPECT_GE(next.granted, leader_back) << conflict;
  EXPECT_LE(late.left - next.granted, 1s) << conflict;
  const auto fate = test::etcd_fate(etcd, prefix, static_cast<std::int64_t>(late.token));
  ASSERT_TRUE(fate) << prefix << " had no entry with token " << late.token;
  std::ostringstream story;
  story << conflict << "; revision " << fate->gone << " removed all but " << fate->left
        << " of the " << fate->with_lease << " keys of its lease " << std::hex << fate->lease
        << (fate->lease_lives ? ", which lives" : ", which is gone");
  EXPECT_GT(fate->gone, 0) << story.str();
  EXPECT_EQ(fate->left, 0U) << story.str();
  EXPECT_FALSE(fate->lease_lives) << story.str();
  std::printf("[          ] etcd#15247: %s\n", story.str().c_str());
}

class EtcdFaultsCrowd : public EtcdFaults {
 protected:
  // leader_back: the fault sets it to the time at which a stopped leader continues.
  static void with_crowd(const std::function<void(Crowd&)>& fault, bool linger = true,
                         const std::chrono::nanoseconds* leader_back = nullptr) {
    // Wait for the first keepalive, after a third of the TTL, so that deadlines are based on a
    // keepalive.
    const auto later = [&](Crowd& crowd) {
      EXPECT_TRUE(wait_until({}, kEtcdTtl / 3 + 300ms));
      fault(crowd);
    };
    chaos::with_crowd(store(), linger, later, [&](Crowd& crowd, Client& observer) {
      for (int lock = 0; lock < Crowd::kLocks; ++lock) {
        if (leader_back == nullptr) {
          EXPECT_TRUE(exclusive_and_ordered(crowd.holds(lock).all())) << Crowd::name(lock);
          continue;
        }
        const auto holds = crowd.holds(lock).all();
        for (const auto& conflict : conflicts(holds)) {
          expect_revoked(etcd(), crowd.root() + "/" + Crowd::name(lock) + "/", conflict,
                         *leader_back);
        }
      }
      // Each client has exactly one lease again at the end.
      EXPECT_TRUE(leases_settle(Crowd::kClients + 1));
      for (const auto& key : etcd().keys()) ADD_FAILURE() << "left behind: " << key.key;
      crowd.close_clients();
      observer.close();
      EXPECT_TRUE(etcd().leases().empty()) << "close() ends them, not their time";
    });
    if (HasFailure()) std::printf("%s\n", etcd().tails().c_str());
  }
};

TEST_F(EtcdFaultsCrowd, GoesOnWhenTheLeaderIsKilledAndRestarted) {
  with_crowd([](Crowd& crowd) { leader_killed(etcd(), crowd); });
}

TEST_F(EtcdFaultsCrowd, GoesOnWhenTheLeaderStopsForTwoTtlAndComesBack) {
  std::chrono::nanoseconds back{};
  with_crowd([&](Crowd& crowd) { back = leader_paused(etcd(), crowd, 2 * kEtcdTtl); }, true, &back);
}

TEST_F(EtcdFaultsCrowd, GoesOnWhenAFollowerIsCutOff) {
  with_crowd([](Crowd& crowd) {
    EXPECT_EQ(follower_cut_off(etcd(), crowd, kEtcdTtl + 2s), 0) << "holds lost";
  });
}

TEST_F(EtcdFaultsCrowd, GoesOnWhenTheLeaderIsCutOff) {
  with_crowd([](Crowd& crowd) { leader_cut_off(etcd(), crowd, kEtcdTtl + 2s); });
}

TEST_F(EtcdFaultsCrowd, GoesOnWhenAllServersAreKilledAndRestarted) {
  with_crowd([](Crowd&) { all_restarted(etcd()); });
}

TEST_F(EtcdFaultsCrowd, GoesOnWhenAHolderIsCutOffSilently) {
  with_crowd([](Crowd& crowd) { holder_cut_off(crowd, kEtcdTtl + kEtcdGrace); });
}

TEST_F(EtcdFaultsCrowd, AStoppedProcessWakesUpWithoutItsLock) {
  with_crowd([](Crowd& crowd) { process_stopped(store(), crowd, 2 * kEtcdTtl); }, false);
}

// No lock is lost: the leases outlive the resets, and each holder keeps its lock.
TEST_F(EtcdFaultsCrowd, GoesOnWhenConnectionsAreResetAgainAndAgain) {
  with_crowd([](Crowd& crowd) {
    const Stopwatch watch;
    while (watch.elapsed() < kEtcdTtl + 1s) {
      for (const auto& proxy : crowd.proxies(crowd.lingerer())) proxy->reset_connections();
      std::this_thread::sleep_for(200ms);
    }
    EXPECT_EQ(crowd.lost(), 0);
    EXPECT_TRUE(crowd.goes_on(1));
  });
}

// The server cancels watches that begin at a compacted revision. That must not count as a deletion.
TEST_F(EtcdFaultsCrowd, AHundredWaitersGoOnWhileTheStoreIsCompacted) {
  constexpr int kWaiters = 100;
  with_crowd([](Crowd& crowd) {
    std::mutex mutex;
    history::Log holds;
    std::vector<std::string> errors;
    std::vector<std::unique_ptr<Client>> clients;
    for (int i = 0; i < 2; ++i) {
      clients.push_back(std::make_unique<Client>(connect(crowd.root())));
    }
    auto first = clients[0]->mutex("many").acquire({.timeout = kLong});
    for (std::size_t i = 0; i < kWaiters; ++i) {
      clients[i % 2]->mutex("many").acquire_async({}, [&](const Result<Lock>& lock) {
        const auto begin = test::boot_now();
        const bool valid = lock && lock->valid();
        if (valid) holds.add({begin, test::boot_now(), lock->token()});
        const std::lock_guard guard(mutex);
        if (!valid) errors.push_back(lock ? "not valid" : lock.error().what());
      });
    }
    int compactions = 0;
    std::jthread compactor([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        try {
          etcd().compact();
          etcd().defragment(++compactions % 3);
        } catch (const std::exception& e) {
          ADD_FAILURE() << e.what();
        }
        std::this_thread::sleep_for(200ms);
      }
    });
    EXPECT_TRUE(eventually(
        "all in line", [&] { return clients[1]->inspect("many").entries.size() == kWaiters + 1; }));
    const auto begin = test::boot_now();
    EXPECT_TRUE(wait_until({}, 2s));
    first.verify(kLong);
    holds.add({begin, test::boot_now(), first.token()});
    first.release(kLong);
    EXPECT_TRUE(eventually("all are served", [&] {
      const std::lock_guard guard(mutex);
      return holds.size() + errors.size() > kWaiters;
    }));
    compactor.request_stop();
    compactor.join();
    for (const auto& client : clients) client->close();
    EXPECT_TRUE(exclusive_and_ordered(holds.all()));
    EXPECT_EQ(errors, std::vector<std::string>{});
    EXPECT_GE(compactions, 5);
    std::printf("[          ] %d compactions\n", compactions);
  });
}

// The contract: the entry of a crashed holder is gone within the session timeout and a second.
TEST_F(EtcdFaults, AfterACrashTheNextOneHoldsWithinTheTtlAndASecond) {
  constexpr auto kSlack = 250ms;  // for the watch events and for busy threads
  const char* const more = std::getenv("BATON_RUNS");
  const int runs = more == nullptr ? 2 : std::atoi(more);
  etcd().wait_synced();
  std::vector<std::string> hosts;
  for (int i = 0; i < etcd().size(); ++i) hosts.push_back(etcd().host(i));
  for (const auto ttl : {2'000ms, 4'000ms}) {
    for (int run = 0; run < runs; ++run) {
      for (const auto took : time_after_crashes(store_of(etcd(), ttl), fresh_root(), hosts)) {
        EXPECT_LE(took, ttl + kEtcdGrace + kSlack);
      }
    }
  }
}

}  // namespace
}  // namespace baton::chaos
