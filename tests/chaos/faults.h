// What the tests of faults on real servers share: a crowd that goes on, and a process that holds.
#pragma once

#include "history/holds.h"
#include "support/boot_clock.h"
#include "support/proxy.h"
#include "support/temp_dir.h"

#include <baton/baton.h>

#include <gtest/gtest.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace baton::chaos {

// The servers of a test, and how clients come to them.
struct FaultyStore {
  std::string scheme;                 // "zk"
  std::vector<std::uint16_t> ports;   // of the servers, on the loopback
  std::chrono::milliseconds session;  // timeout of the clients' sessions
  std::chrono::milliseconds grace;    // so much later what a dead session had is gone

  std::string hosts() const;  // "127.0.0.1:p1,127.0.0.1:p2"
  // root: "" or "/app".
  std::string url(const std::string& hosts, const std::string& root) const {
    return scheme + "://" + hosts + root;
  }
};

// A client that says nothing of the faults it meets.
Client connect_quietly(const std::string& url, std::chrono::milliseconds session,
                       const std::string& label);

// A name that no test before has used.
std::string fresh_root();

// Nobody is in line for any lock below the observer's root, at the latest when a session would have
// ended. Sharp only while the clients live on: a session that is closed takes its entries along.
::testing::AssertionResult nobody_in_line(Client& observer, const FaultyStore& store);

// Until so much time has passed.
::testing::AssertionResult wait_until(const test::Stopwatch& watch, std::chrono::milliseconds time);

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

  Crowd(const FaultyStore& store, std::string root);

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
  void close_clients();  // after stop()

  // Of the servers but this one, the one that serves most of the clients.
  int busiest(int but) const;
  history::Log& holds(int lock) { return holds_.at(static_cast<std::size_t>(lock)); }
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
  std::array<history::Log, kLocks> holds_;
  std::atomic<bool> linger_{false};
  std::atomic<int> lingering_{0};
  std::atomic<int> lingerer_{0};
  std::atomic<int> lost_{0};
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<std::jthread> threads_;  // last: joined first
};

// The fault comes while somebody has the first lock and keeps it as long as it is valid (if
// `linger`), and the second one goes from hand to hand. Afterwards everybody goes on, nobody stays
// in line; then `check`, with the clients still connected.
void with_crowd(const FaultyStore& store, bool linger, const std::function<void(Crowd&)>& fault,
                const std::function<void(Crowd&, Client& observer)>& check);
// The usual check: no two holds overlap, and tokens rise.
void expect_exclusive(Crowd& crowd);

// A process of ours that holds a lock; killed and reaped at the latest by the destructor.
class HoldingChild {
 public:
  HoldingChild(const std::string& url, std::chrono::milliseconds session, const std::string& name);
  ~HoldingChild();
  HoldingChild(const HoldingChild&) = delete;
  HoldingChild& operator=(const HoldingChild&) = delete;

  std::string record() const { return directory_ / "record"; }  // written when it has lost the lock
  ::testing::AssertionResult wait_held() const;
  bool stop() const;  // SIGSTOP; returns when it is
  void go_on() const;
  void kill();
  std::optional<int> end();  // its exit code

 private:
  const test::TempDir directory_;
  pid_t pid_;
};

// A holder of each lock `crashN` is killed, all at once; each has one behind it. How long it took
// until that one held. hosts: where the holders come to the store, one for each.
std::vector<std::chrono::milliseconds> time_after_crashes(const FaultyStore& store,
                                                          const std::string& root,
                                                          const std::vector<std::string>& hosts);

}  // namespace baton::chaos
