// What the tests of faults on ZooKeeper share: real servers, and a crowd that goes on.
#pragma once

#include "support/intervals.h"
#include "support/proxy.h"
#include "support/zk_server.h"

#include <baton/baton.h>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace baton::chaos {

inline constexpr std::chrono::milliseconds kZkTimeout{4'000};  // of sessions
inline constexpr std::chrono::milliseconds kZkTick{500};

// A client that says nothing of the faults it meets.
Client connect_quietly(const std::string& hosts, const std::string& root, const std::string& label);

// A name that no test before has used.
std::string fresh_zk_root();

// Three servers with short ticks, shared by all tests of the process.
class ZkFaults : public ::testing::Test {
 protected:
  static void SetUpTestSuite();
  void SetUp() override;
  static test::ZkEnsemble& zk() { return *zk_; }

 private:
  static std::unique_ptr<test::ZkEnsemble> zk_;
};

// Nobody is in line for any lock below the observer's root, at the latest when a session would have
// ended. Sharp only while the clients live on: a session that is closed takes its entries along.
::testing::AssertionResult nobody_in_line(Client& observer);

// Asks a lock until it is not valid any more, or until told to leave it. The last moment in which
// it was valid; the epoch: it never was.
template <class Leave>
std::chrono::nanoseconds stay_while_valid(const Lock& lock, Leave leave) {
  std::chrono::nanoseconds last{};
  for (;;) {
    // A lock that is valid after this moment was valid in it: it was granted before.
    const auto now = test::boot_now();
    if (!lock.valid()) return last;
    last = now;
    if (leave()) return last;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Four clients, each behind proxies of its own, that take two locks and give them back all the
// time; each client has a thread for each lock.
class Crowd {
 public:
  static constexpr int kClients = 4;
  static constexpr int kLocks = 2;
  static std::string name(int lock) { return "crowd/lock" + std::to_string(lock); }

  Crowd(const test::ZkEnsemble& zk, std::string root);

  const std::string& root() const noexcept { return root_; }

  // Whoever has the first lock keeps it as long as it is valid. Turning it on returns when somebody
  // does so.
  ::testing::AssertionResult linger(bool on);
  int lingerer() const noexcept { return lingerer_; }  // the client that did so last
  // Until each client has been granted each lock a few times more.
  ::testing::AssertionResult everybody_goes_on();
  // Until somebody has been granted this lock a few times more.
  ::testing::AssertionResult goes_on(int lock);
  // Everybody gives back what he has. The clients stay connected.
  void stop();

  // Of the servers but this one, the one that serves most of the clients.
  int busiest(int but) const;
  test::Intervals& holds(int lock) { return holds_.at(static_cast<std::size_t>(lock)); }
  int lost() const noexcept { return lost_; }
  const std::vector<std::unique_ptr<test::Proxy>>& proxies(int client) const {
    return members_.at(static_cast<std::size_t>(client))->proxies;
  }

 private:
  struct Member {
    std::vector<std::unique_ptr<test::Proxy>> proxies;
    std::unique_ptr<Client> client;
    std::array<std::atomic<int>, kLocks> grants{};
  };
  void work(int client, int lock, const std::stop_token& stop);
  void hold(Lock lock, int client, int which, unsigned length_ms);
  int grants(int lock) const;

  const std::string root_;
  std::array<test::Intervals, kLocks> holds_;
  std::atomic<bool> linger_{false};
  std::atomic<int> lingering_{0};
  std::atomic<int> lingerer_{0};
  std::atomic<int> lost_{0};
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<std::jthread> threads_;  // last: joined first
};

// The role of a child process: --hold HOSTS ROOT NAME FILE. Takes the lock, writes "held", and asks
// until it is lost; then "BEGIN END TOKEN" goes to the file, and it ends.
int hold_role(const std::vector<std::string>& arguments);

}  // namespace baton::chaos
