// The one who breaks things, on a schedule that a seed decides.
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

// What there is to break, and to tell.
struct Scene {
  Cluster& cluster;
  Crew& crew;
  Observer& observer;
  const HistoryWriter& history;
  const int locks;
  const std::string directory;           // of the histories, and of what the locks protect
  std::atomic<std::uint64_t> faults{0};  // so many have begun
  std::mutex mutex{};
  std::map<std::string, int> kinds{};   // how often, by name
  std::vector<std::string> problems{};  // things that went wrong and are nobody's fault
};

// What the seed decides of one fault. Who that is in the end depends on who holds at that moment.
struct Draw {
  std::uint64_t pick = 0;  // among those that fit
  std::uint32_t lock = 0;  // whose holder or waiter
  bool other = false;      // a side, a direction, a way
  bool long_one = false;   // twice the session timeout instead of half of it
  int percent = 0;
  std::chrono::milliseconds time() const { return long_one ? kSession * 2 : kSession / 2; }
};

// One fault on record, from its making to its end.
class Fault {
 public:
  Fault(Scene& scene, const std::string& kind, const std::string& target);
  ~Fault();
  void undoing() const;  // it is about to be undone; what it did to others may come only now
  void expired(std::uint64_t leases) const;  // Kind::expired
  Fault(const Fault&) = delete;
  Fault& operator=(const Fault&) = delete;

 private:
  void note(Kind kind, std::uint64_t value = 0) const;

  Scene& scene_;
  const std::uint64_t number_;
};

// make: does it, waits, undoes it. Each step returns when it is so, and throws if it does not come
// so.
struct FaultKind {
  std::string_view name;  // for --only
  void (*make)(Scene&, const Draw&);
};

std::vector<FaultKind> client_faults();
std::vector<FaultKind> control_faults();  // holders that stop for longer than their sessions last
std::vector<FaultKind> operator_faults();
std::vector<FaultKind> foreign_faults();
std::vector<FaultKind> server_faults(const std::string& scheme);

// Breaks one thing after the other: all kinds once in an order that the seed decides, then again in
// another one. Two of them at work make faults that overlap. `every`: between the end of a fault
// and the next one, about; kinds of less length come more often by that.
// `upkeep` comes before each. If it or a fault fails, `repair` puts right what was left.
struct Care {
  std::function<void()> upkeep;
  std::function<void()> repair;
};
void break_things(Scene& scene, std::vector<FaultKind> kinds, std::uint64_t seed,
                  std::chrono::milliseconds every, const Care& care, const std::stop_token& stop);

// How long a fault lasts.
void pass(std::chrono::milliseconds time);
// Throws if it does not become true in time.
void require(const std::string& what, const std::function<bool()>& condition,
             std::chrono::milliseconds limit = std::chrono::seconds(30));
// Servers that fail meanwhile are no news here: asked again, for longer than a quorum is away.
void patiently(const std::function<bool()>& step);

// The entries of this lock, in order. Throws as Cluster does.
std::vector<InLine> line_of(Scene& scene, std::uint32_t lock);

}  // namespace baton::chaos
