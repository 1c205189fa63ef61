// Compares until when a holder believes in its lock with until when the store keeps it, on one
// clock.
#pragma once

#include "support/zk_test_client.h"

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace baton::chaos {

using std::chrono::nanoseconds;

// A client that believes that it holds the lock of a node.
struct Believer {
  std::string node;
  // How long it will believe if it receives nothing more; nullopt: it does not believe.
  // Thread-safe.
  std::function<std::optional<nanoseconds>()> belief;
};

// Times are on the boot clock.
struct Verdict {
  nanoseconds until{};     // the belief ended at this moment or before
  nanoseconds present{};   // the node existed at least until this moment
  bool ended = false;      // the belief has ended
  bool gone = false;       // the node is gone
  bool came_back = false;  // the belief returned after its end

  // Positive: the belief ended before the store could give the lock to another client.
  double margin_ms() const {
    return std::chrono::duration<double, std::milli>(present - until).count();
  }
};

// From its construction on, it asks all believers about every millisecond, and a server for all
// nodes every few milliseconds. If a server cannot answer, it is asked again. A node counts as
// present only if an answer says so, and only until the request was sent. So a missed answer makes
// the margin smaller.
class Trial {
 public:
  // majority: the servers to ask. If there is a leader, name only the leader: a follower that lags
  // shows nodes a little longer.
  Trial(std::vector<Believer> believers, const std::string& majority);

  bool all_gone() const;
  bool ended(std::size_t count) const;  // true: the first `count` believers do not believe any more
  std::vector<Verdict> verdicts() const;

 private:
  void ask_believers(const std::stop_token& stop);
  void ask_server(const std::stop_token& stop);
  void sample(const Believer& believer, Verdict& verdict);

  const std::vector<Believer> believers_;
  test::ZkTestClient server_;
  mutable std::mutex mutex_;
  std::vector<Verdict> verdicts_;
  std::jthread asks_believers_;  // the last two members: joined first
  std::jthread asks_server_;
};

// The margins of one scenario, printed line by line.
class Margins {
 public:
  explicit Margins(std::string scenario) : scenario_(std::move(scenario)) {}
  ~Margins();  // prints the smallest and the median of all
  Margins(const Margins&) = delete;
  Margins& operator=(const Margins&) = delete;

  // Adds one run with one cut. aside: text to print after it.
  void add(int run, const std::vector<double>& of_holders, const std::string& aside);
  bool empty() const noexcept { return all_.empty(); }

 private:
  const std::string scenario_;
  std::vector<double> all_;       // one for each holder
  std::vector<double> smallest_;  // one for each run
};

// How many cuts to make per scenario: BATON_RUNS, or one.
int runs();

// Returns at the next moment at which CLOCK_MONOTONIC modulo `period` equals `phase`. This is the
// clock of the servers: they end sessions at multiples of their tick.
void wait_for_phase(std::chrono::milliseconds phase, std::chrono::milliseconds period);

}  // namespace baton::chaos
