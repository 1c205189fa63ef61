// Until when a holder believes in its lock, and until when the store keeps it: on one clock.
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

// Somebody who believes to hold what a node stands for.
struct Believer {
  std::string node;
  // For how long it would believe without further word; nullopt: it does not. From any thread.
  std::function<std::optional<nanoseconds>()> belief;
};

// Times of the boot clock.
struct Verdict {
  nanoseconds until{};     // the belief did not last longer than this
  nanoseconds present{};   // the node was there at least until this
  bool ended = false;      // the belief has
  bool gone = false;       // the node is
  bool came_back = false;  // the belief, after its end

  // Positive: the belief ended before the store could give the lock to somebody else.
  double margin_ms() const {
    return std::chrono::duration<double, std::milli>(present - until).count();
  }
};

// From its construction on, asks all believers about once a millisecond, and a server about all
// nodes every few. A server that cannot answer is asked again; a node counts as there only when an
// answer says so, and only until that question was sent: what is not seen makes the margin smaller.
class Trial {
 public:
  // majority: the servers to ask. Where there is a leader name it alone: a follower that lags shows
  // nodes a little longer.
  Trial(std::vector<Believer> believers, const std::string& majority);

  bool all_gone() const;
  bool ended(std::size_t count) const;  // the belief of the first ones has
  std::vector<Verdict> verdicts() const;

 private:
  void ask_believers(const std::stop_token& stop);
  void ask_server(const std::stop_token& stop);
  void sample(const Believer& believer, Verdict& verdict);

  const std::vector<Believer> believers_;
  test::ZkTestClient server_;
  mutable std::mutex mutex_;
  std::vector<Verdict> verdicts_;
  std::jthread asks_believers_;  // last: joined first
  std::jthread asks_server_;
};

// The margins of one scenario, told line by line.
class Margins {
 public:
  explicit Margins(std::string scenario) : scenario_(std::move(scenario)) {}
  ~Margins();  // the smallest and the median of all
  Margins(const Margins&) = delete;
  Margins& operator=(const Margins&) = delete;

  // One run with one cut. aside: more to say about it.
  void add(int run, const std::vector<double>& of_holders, const std::string& aside);
  bool empty() const noexcept { return all_.empty(); }

 private:
  const std::string scenario_;
  std::vector<double> all_;       // of every holder
  std::vector<double> smallest_;  // of every run
};

// How many cuts per scenario: BATON_RUNS, or one.
int runs();

// Returns at the next moment at which CLOCK_MONOTONIC, counted modulo `period`, has this phase. The
// clock of the servers: they end sessions at multiples of their tick.
void wait_for_phase(std::chrono::milliseconds phase, std::chrono::milliseconds period);

}  // namespace baton::chaos
