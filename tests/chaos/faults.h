// Shared by the tests of faults on real servers: a crowd of clients, and a process that holds a
// lock.
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

// The servers of a test, and how clients connect to them.
struct FaultyStore {
  std::string scheme;                 // "zk"
  std::vector<std::uint16_t> ports;   // of the servers, on the loopback
  std::chrono::milliseconds session;  // timeout of the clients' sessions
  std::chrono::milliseconds grace;    // the entries of a dead session are gone so much later

  std::string hosts() const;  // "127.0.0.1:p1,127.0.0.1:p2"
  // root: "" or "/app".
  std::string url(const std::string& hosts, const std::string& root) const {
    return scheme + "://" + hosts + root;
  }
};

// Opens a client that logs nothing.
Client connect_quietly(const std::string& url, std::chrono::milliseconds session,
                       const std::string& label);

// Returns a root that no earlier test has used.
std::string fresh_root();

// Waits until no entry is left in any queue below the observer's root, at most until a session
// would have ended. This proves something only while the clients are connected: a session that is
// closed removes its entries.
::testing::AssertionResult nobody_in_line(Client& observer, const FaultyStore& store);

// Waits until so much time has passed.
::testing::AssertionResult wait_until(const test::Stopwatch& watch, std::chrono::milliseconds time);

// Asks valid() until it returns false, or until leave() returns true. Returns the last moment at
// which the lock was valid, or the epoch if it never was.
template <class Leave>
std::chrono::nanoseconds stay_while_valid(const Lock& lock, Leave leave) {
  std::chrono::nanoseconds last{};
  for (;;) {
    // The lock was granted before this moment. So if it is valid after this moment, it was valid at
    // it.
    const auto now = test::boot_now();
    if (!lock.valid()) return last;
    last = now;
    if (leave()) return last;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Four clients, each behind its own proxies, that acquire and release two locks continuously. Each
// client has a thread for each lock.
class Crowd {
 public:
  static constexpr int kClients = 4;
  static constexpr int kLocks = 2;
  static std::string name(int lock) { return "crowd/lock" + std::to_string(lock); }

  Crowd(const FaultyStore& store, std::string root);

  const std::string& root() const noexcept { return root_; }

  // While this is on, the holder of the first lock keeps it as long as it is valid. Turning it on
  // returns when a client keeps the lock.
  ::testing::AssertionResult linger(bool on);
  int lingerer() const noexcept { return lingerer_; }  // the last client that kept the lock
  // Waits until each client has been granted each lock two more times.
  ::testing::AssertionResult everybody_goes_on();
  // Waits until this lock has been granted kClients more times, to any clients.
  ::testing::AssertionResult goes_on(int lock);
  // Ends the threads, which release their locks. The clients stay connected.
  void stop();
  void close_clients();  // only after stop()

  // The server that serves most of the clients, not counting the server `but`.
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
  std::vector<std::jthread> threads_;  // last member: joined first
};

// Causes the fault while the second lock changes its holder continuously, and, if `linger` is set,
// while the holder of the first lock keeps it as long as it is valid. Afterwards all clients must
// continue and no entry may be left. Then runs `check`, with the clients still connected.
void with_crowd(const FaultyStore& store, bool linger, const std::function<void(Crowd&)>& fault,
                const std::function<void(Crowd&, Client& observer)>& check);
// The usual check: holds do not overlap, and tokens rise.
void expect_exclusive(Crowd& crowd);

// Another process of this program that holds a lock. The destructor kills and reaps it if it still
// runs.
class HoldingChild {
 public:
  HoldingChild(const std::string& url, std::chrono::milliseconds session, const std::string& name);
  ~HoldingChild();
  HoldingChild(const HoldingChild&) = delete;
  HoldingChild& operator=(const HoldingChild&) = delete;

  std::string record() const { return directory_ / "record"; }  // written after the lock is lost
  ::testing::AssertionResult wait_held() const;
  bool stop() const;  // SIGSTOP; returns when the process has stopped
  void go_on() const;
  void kill();
  std::optional<int> end();  // waits for its end; returns its exit code

 private:
  const test::TempDir directory_;
  pid_t pid_;
};

// For each of the `hosts`, a process holds the lock `crashN` and connects there, and a client waits
// behind it. Kills all holders at the same time. Returns how long each waiter then waited.
std::vector<std::chrono::milliseconds> time_after_crashes(const FaultyStore& store,
                                                          const std::string& root,
                                                          const std::vector<std::string>& hosts);

}  // namespace baton::chaos
