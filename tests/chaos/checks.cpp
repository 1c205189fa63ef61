#include "chaos/checks.h"

#include <algorithm>
#include <cstdio>
#include <unordered_map>

namespace baton::chaos {
namespace {

using std::chrono::nanoseconds;

constexpr std::size_t kDetails = 5;

struct Grant {
  std::int64_t asked;
  std::int64_t begin;
  std::int64_t end;
  unsigned long long token;
  std::uint32_t worker;
};

class Checker {
 public:
  Checker(const Ledger& ledger, const std::vector<Kill>& kills) {
    for (const Kill& kill : kills) killed_.emplace(kill.worker, kill.sent.count());
    for (std::size_t i = 0; i < ledger.holds(); ++i) add(ledger.hold(i));
    std::sort(grants_.begin(), grants_.end(),
              [](const Grant& a, const Grant& b) { return a.begin < b.begin; });
    for (std::size_t i = 0; i < ledger.sightings(); ++i) {
      sighted_.emplace(ledger.sighting(i).token, ledger.sighting(i).at);
    }
    found_.grants = grants_.size();
    found_.holders_killed = holders_.size();
  }

  void exclusion() {
    const Grant* longest = nullptr;  // of those before, the one that ends last
    for (const Grant& grant : grants_) {
      if (longest != nullptr && grant.begin < longest->end) {
        note(found_.overlaps,
             "worker %u (token %llu) got the lock %.3f ms before worker %u (token "
             "%llu) was out",
             grant.worker, grant.token, ms(longest->end - grant.begin), longest->worker,
             longest->token);
      }
      if (longest == nullptr || grant.end > longest->end) longest = &grant;
    }
  }

  void order() {
    std::int64_t latest = 0;  // of those before, who asked last
    const Grant* before = nullptr;
    for (const Grant& grant : grants_) {
      if (before != nullptr && grant.token <= before->token) {
        note(found_.inversions, "token %llu (worker %u) was granted after token %llu (worker %u)",
             grant.token, grant.worker, before->token, before->worker);
      }
      if (const auto seen = sighted_.find(grant.token); seen != sighted_.end()) {
        ++found_.sighted;
        if (latest > seen->second) {
          note(found_.overtaken,
               "worker %u (token %llu) waited already when somebody asked %.3f ms "
               "later, and was served after him",
               grant.worker, grant.token, ms(latest - seen->second));
        }
      }
      latest = std::max(latest, grant.asked);
      before = &grant;
    }
  }

  void takeover(const std::vector<Kill>& kills, const std::vector<Pause>& pauses,
                nanoseconds limit) {
    for (const Kill& kill : kills) {
      const auto next =
          std::upper_bound(grants_.begin(), grants_.end(), kill.sent.count(),
                           [](std::int64_t at, const Grant& grant) { return at < grant.begin; });
      if (next == grants_.end()) {
        note(found_.slow, "nobody got the lock any more after the kill of worker %u", kill.worker);
        continue;
      }
      const bool holder = holders_.contains(kill.worker);
      const nanoseconds begin(next->begin);
      const nanoseconds raw = begin - kill.sent;
      const nanoseconds delay = raw - paused_between(pauses, kill.sent, begin);
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

  void add(const Hold& hold) {
    if (hold.begin == 0) return;  // killed between the grant and its record
    Grant grant{hold.asked, hold.begin, hold.end, hold.token, hold.worker};
    if (grant.end == 0) {
      grant.end = hold.seen;
      if (const auto kill = killed_.find(grant.worker); kill != killed_.end()) {
        grant.end = std::max(grant.end, kill->second);
        holders_.emplace(grant.worker, grant.token);
      } else {
        note(found_.unended, "worker %u never left its hold (token %llu), and nobody killed it",
             grant.worker, grant.token);
      }
    }
    grants_.push_back(grant);
  }

  template <class... Args>
  void note(std::size_t& count, const char* format, Args... args) {
    if (++count > kDetails) return;
    char text[256];
    std::snprintf(text, sizeof text, format, args...);
    found_.details.emplace_back(text);
  }

  std::unordered_map<std::uint32_t, std::int64_t> killed_;    // when, by worker
  std::unordered_map<std::uint32_t, std::uint64_t> holders_;  // killed while holding: the token
  std::unordered_map<std::uint64_t, std::int64_t> sighted_;   // when, by token
  std::vector<Grant> grants_;                                 // by begin
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
  checker.exclusion();
  checker.order();
  checker.takeover(kills, pauses, limit);
  return checker.result();
}

}  // namespace baton::chaos
