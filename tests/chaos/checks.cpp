#include "chaos/checks.h"

#include "history/holds.h"

#include <algorithm>
#include <cstdio>
#include <sstream>
#include <unordered_map>
#include <unordered_set>

namespace baton::chaos {
namespace {

using std::chrono::nanoseconds;

constexpr std::size_t kDetails = 5;

class Checker {
 public:
  Checker(const Ledger& ledger, const std::vector<Kill>& kills) {
    std::unordered_map<std::uint32_t, nanoseconds> killed;    // time of the kill, by worker
    std::unordered_map<std::uint64_t, std::int64_t> sighted;  // time of the sighting, by token
    for (const Kill& kill : kills) killed.emplace(kill.worker, kill.sent);
    for (std::size_t i = 0; i < ledger.sightings(); ++i) {
      sighted.emplace(ledger.sighting(i).token, ledger.sighting(i).at);
    }
    for (std::size_t i = 0; i < ledger.holds(); ++i) {
      const Hold& hold = ledger.hold(i);
      if (hold.begin == 0) continue;  // its process was killed between the grant and its record
      history::Hold& grant = grants_.emplace_back();
      grant.who = "worker";
      grant.number = hold.worker;
      grant.token = hold.token;
      grant.asked = nanoseconds(hold.asked);
      grant.granted = nanoseconds(hold.begin);
      grant.left = nanoseconds(hold.end);
      if (const auto seen = sighted.find(grant.token); seen != sighted.end()) {
        grant.joined = nanoseconds(seen->second);
        ++found_.sighted;
      }
      if (hold.end == 0) end_at_the_kill(grant, nanoseconds(hold.seen), killed);
    }
    std::ranges::sort(grants_, {}, &history::Hold::granted);
    found_.grants = grants_.size();
    found_.holders_killed = holders_.size();
  }

  void exclusion_and_order() {
    note(found_.overlaps, "held at once: ", history::overlaps(grants_));
    note(found_.inversions, "tokens out of order: ", history::inversions(grants_));
    note(found_.overtaken, "served before one that waited: ", history::overtaken(grants_));
  }

  void takeover(const std::vector<Kill>& kills, const std::vector<Pause>& pauses,
                nanoseconds limit) {
    for (const Kill& kill : kills) {
      const auto next = std::ranges::upper_bound(grants_, kill.sent, {}, &history::Hold::granted);
      if (next == grants_.end()) {
        note(found_.slow, "nobody got the lock any more after the kill of worker %u", kill.worker);
        continue;
      }
      const bool holder = holders_.contains(kill.worker);
      const nanoseconds raw = next->granted - kill.sent;
      const nanoseconds delay = raw - paused_between(pauses, kill.sent, next->granted);
      found_.raw.all.push_back(raw.count());
      found_.after_any.all.push_back(delay.count());
      if (holder) found_.after_holder.all.push_back(delay.count());
      if (delay > limit) {
        note(found_.slow,
             "the next grant came %.1f ms after the kill of worker %u, which %s; "
             "%.1f ms of that are pauses of the machine",
             ms(raw.count()), kill.worker, holder ? "held" : "did not hold",
             ms((raw - delay).count()));
      }
    }
  }

  Findings result() {
    for (Delays* delays : {&found_.after_holder, &found_.after_any, &found_.raw}) {
      std::sort(delays->all.begin(), delays->all.end());
    }
    return std::move(found_);
  }

 private:
  static double ms(std::int64_t ns) { return static_cast<double>(ns) / 1e6; }

  // Sets the end of a hold that its owner did not end.
  void end_at_the_kill(history::Hold& grant, nanoseconds seen,
                       const std::unordered_map<std::uint32_t, nanoseconds>& killed) {
    grant.left = seen;
    const auto worker = static_cast<std::uint32_t>(grant.number);
    if (const auto kill = killed.find(worker); kill != killed.end()) {
      grant.left = std::max(seen, kill->second);
      grant.ending = history::Ending::killed;
      holders_.insert(worker);
    } else {
      note(found_.unended, "worker %u never left its hold (token %llu), and nobody killed it",
           worker, static_cast<unsigned long long>(grant.token));
    }
  }

  void note(std::size_t& count, const char* promise, const history::Conflicts& conflicts) {
    count = conflicts.size();
    for (std::size_t i = 0; i < std::min(count, kDetails); ++i) {
      std::ostringstream text;
      text << promise << conflicts[i];
      found_.details.push_back(text.str());
    }
  }

  template <class... Args>
  void note(std::size_t& count, const char* format, Args... args) {
    if (++count > kDetails) return;
    char text[256];
    std::snprintf(text, sizeof text, format, args...);
    found_.details.emplace_back(text);
  }

  history::Holds grants_;                      // sorted by grant
  std::unordered_set<std::uint32_t> holders_;  // workers that were killed while they held
  Findings found_;
};

}  // namespace

double Delays::at(double share) const {
  if (all.empty()) return 0;
  const auto i = static_cast<std::size_t>(share * static_cast<double>(all.size()));
  return static_cast<double>(all[std::min(i, all.size() - 1)]) / 1e6;
}

Findings check(const Ledger& ledger, const std::vector<Kill>& kills,
               const std::vector<Pause>& pauses, nanoseconds limit) {
  Checker checker(ledger, kills);
  checker.exclusion_and_order();
  checker.takeover(kills, pauses, limit);
  return checker.result();
}

}  // namespace baton::chaos
