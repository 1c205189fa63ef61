// Compares until when a holder believed in its lock with when the store freed it.
#include "chaos/cluster/holds.h"

#include <baton/error.h>

#include <algorithm>

namespace baton::chaos {
namespace {

// Until when the holder believes in its lock, from what it has received by its last `valid`.
Time claim_of(const Hold& hold) {
  Time claim = std::max(hold.until, *hold.last_valid);
  const Moment loss = earlier(hold.lost, hold.invalid);
  if (hold.release && (!loss || *hold.release < *loss)) claim = std::min(claim, *hold.release);
  if (!loss || *loss >= hold.until) return claim;  // the loss came with the deadline, or never
  // The store reports the end of an entry or session only after that end. If the report had been
  // lost, the holder would have believed until its deadline.
  const bool told = hold.lost && (hold.code == static_cast<std::uint64_t>(Errc::session_expired) ||
                                  hold.code == static_cast<std::uint64_t>(Errc::evicted));
  return told ? claim : std::min(claim, *hold.last_valid);
}

}  // namespace

void check_early_loss(Bench& bench) {
  const Index& index = bench.index;
  // A holder has nobody ahead of it: all entries with smaller tokens are gone by then.
  std::map<std::uint32_t, std::vector<EarliestAbove::Item>> granted;
  for (const Hold& hold : index.holds) {
    if (hold.granted) granted[hold.lock].push_back({hold.token, *hold.granted, &hold});
  }
  for (const auto& [lock, list] : index.grants) {
    const EarliestAbove next_grants(granted[lock]);
    for (const std::size_t number : list) {
      const Hold& hold = index.holds[number];
      const Entry* entry = index.entry(hold);
      if (entry != nullptr && entry->evicted) continue;
      Moment gone = entry == nullptr ? Moment() : entry->gone;
      // The store had the entry until its release. A reading without it before that came from a
      // server with wrong data.
      const bool disproven = gone && hold.confirmed && hold.release && *gone < *hold.release;
      if (disproven && bench.may_forget(*gone)) gone.reset();
      const auto* next = next_grants.find(hold.token);
      const Moment freed = earlier(gone, next == nullptr ? Moment() : Moment(next->at));
      if (!freed) continue;
      bench.judged(Checker::early_loss);
      const std::string how = gone == freed ? std::string("its entry was gone ")
                                            : index.who(*next->hold) + " was granted ";
      const Time claim = claim_of(hold);
      if (*hold.last_valid > *freed) {
        bench.object(Checker::early_loss, *freed,
                     index.who(hold) + " was valid " + index.when(*hold.last_valid) + ", but " +
                         how + index.when(*freed),
                     &hold);
      } else if (claim > *freed) {
        bench.object(Checker::early_loss, *freed,
                     index.who(hold) + " would have believed until " + in_ms(claim - *freed) +
                         " after " + how + index.when(*freed),
                     &hold);
      }
      // The margin, only for holders that did not release the lock themselves.
      const Moment lost = earlier(hold.lost, hold.invalid);
      if (hold.release && (!lost || *hold.release < *lost)) continue;
      // By the clock, belief ends with the deadline, even if a stopped process records it later.
      const Time belief_end = lost ? std::min(*lost, hold.until) : hold.until;
      bench.verdict.margins.push_back({*freed, *freed - belief_end, true});
    }
  }
}

namespace {
// True if a foreign entry stood between the two holds: it held the lock meanwhile, for an unknown
// time.
bool foreign_between(const Index& index, const Hold& before, const Hold& after) {
  const auto from = index.entries.upper_bound({before.lock, before.token});
  const auto to = index.entries.lower_bound({after.lock, after.token});
  return before.token < after.token &&
         std::any_of(from, to, [](const auto& each) { return each.second.foreign; });
}
}  // namespace

void collect_handovers(Bench& bench) {
  const Index& index = bench.index;
  for (const auto& [lock, list] : index.grants) {
    const Hold* before = nullptr;
    for (const std::size_t number : list) {
      const Hold& hold = index.holds[number];
      if (before != nullptr && hold.asked && hold.granted) {
        const Moment lost = earlier(before->lost, before->invalid);
        const Moment killed = index.life(before->client).killed;
        const Moment end = earlier(before->release, earlier(lost, killed));
        // Only if the next holder already waited: otherwise it found a free lock.
        if (end && *hold.asked <= *end && *hold.granted >= *end &&
            !foreign_between(index, *before, hold)) {
          bench.verdict.handovers.push_back(
              {*hold.granted, *hold.granted - *end, !before->release || *end < *before->release});
        }
      }
      before = &hold;
    }
  }
}

}  // namespace baton::chaos
