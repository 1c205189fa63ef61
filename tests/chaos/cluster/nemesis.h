// Injects faults, on a schedule that a seed decides.
#pragma once

#include "chaos/cluster/cluster.h"
#include "chaos/cluster/crew.h"
#include "chaos/cluster/history.h"
#include "chaos/cluster/observer.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace baton::chaos {

// What faults act on, and where they are recorded.
struct Scene {
  Cluster& cluster;
  Crew& crew;
  Observer& observer;
  const HistoryWriter& history;
  const int locks;
  const std::string directory;           // of the histories and of the protected registers
  std::atomic<std::uint64_t> faults{0};  // how many faults have begun
  std::mutex mutex{};
  std::map<std::string, int> kinds{};   // how many faults of each kind
  std::vector<std::string> problems{};  // errors of the test itself, not violations
};

// What the seed decides for one fault. The actual target also depends on the holders at that
// moment.
struct Draw {
  std::uint64_t pick = 0;  // chooses among the candidates
  std::uint32_t lock = 0;  // whose holder or waiter is the target
  bool other = false;      // chooses between two variants: a side, a direction, a method
  bool long_one = false;   // lasts twice the session timeout instead of half of it
  int percent = 0;
  std::chrono::milliseconds time() const { return long_one ? kSession * 2 : kSession / 2; }
};

// One fault in the history, from its beginning to its end.
class Fault {
 public:
  Fault(Scene& scene, const std::string& kind, const std::string& target);
  ~Fault();
  void undoing() const;  // call before the fault is undone: its effect on others may begin only now
  void expired(std::uint64_t leases) const;  // writes Kind::expired
  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;

 private:
  void note(Kind kind, std::uint64_t value = 0) const;

  Scene& scene_;
  const std::uint64_t number_;
};

// make: causes the fault, waits, and undoes it. Each step returns when its effect is verified, and
// throws if the effect does not come.
struct FaultKind {
  std::string_view name;  // as --only names it
  void (*make)(Scene&, const Draw&);
};

std::vector<FaultKind> client_faults();
std::vector<FaultKind> control_faults();  // holders stop for longer than their sessions last
std::vector<FaultKind> operator_faults();
std::vector<FaultKind> foreign_faults();
std::vector<FaultKind> server_faults(const std::string& scheme);

// Causes one fault after the other: all kinds once in an order that the seed decides, then again in
// another order. Two threads in this function make faults that overlap. `every` is the approximate
// time between the end of a fault and the beginning of the next. `upkeep` runs before each fault.
// If `upkeep` or a fault throws, `repair` restores the working state.
struct Care {
  std::function<void()> upkeep;
  std::function<void()> repair;
};
void break_things(Scene& scene, std::vector<FaultKind> kinds, std::uint64_t seed,
                  std::chrono::milliseconds every, const Care& care, const std::stop_token& stop);

// Waits for the duration of a fault.
void pass(std::chrono::milliseconds time);
// Throws if the condition does not become true within the limit.
void require(const std::string& what, const std::function<bool()>& condition,
             std::chrono::milliseconds limit = std::chrono::seconds(30));
// Repeats the step until it returns true. An exception means that servers fail at present; the step
// is then repeated for longer than a quorum is away.
void patiently(const std::function<bool()>& step);

// The entries of this lock, in queue order. Throws as Cluster::in_line does.
std::vector<InLine> line_of(Scene& scene, std::uint32_t lock);

}  // namespace baton::chaos
