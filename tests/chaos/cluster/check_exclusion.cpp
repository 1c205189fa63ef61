// Checks which holds were valid at the same time, and holds that were evicted or became valid
// again.
#include "chaos/cluster/holds.h"

#include <algorithm>

namespace baton::chaos {

void check_overlap(Bench& bench) {
  const Index& index = bench.index;
  for (const auto& [lock, list] : index.grants) {
    auto holds = index.proven(list);
    // Evicted before it was first proven valid: it may be valid beside others at any time.
    std::erase_if(holds, [](const history::Hold& hold) { return hold.left <= hold.granted; });
    bench.judged(Checker::overlap, holds.size());
    for (const auto& [before, later] : history::overlaps(holds)) {
      const Hold& longest = index.holds[before->number];
      const Hold& hold = index.holds[later->number];
      bench.object(Checker::overlap, later->granted,
                   index.who(hold) + " was valid " + index.when(later->granted) + ", and " +
                       index.who(longest) + " still was " +
                       in_ms(std::min(before->left, later->left) - later->granted) + " later",
                   hold.token < longest.token ? &hold : &longest);
    }
  }
}

// After an eviction valid() turns false within a second if there is contact with the store, else at
// the last deadline: without contact no deadline moves. The second counts from the moment at which
// the entry is gone for certain, without the time in which the process is stopped.
void check_evictions(Bench& bench) {
  using namespace std::chrono_literals;
  const Index& index = bench.index;
  struct Evicted {
    const Hold* hold;
    Time limit;
  };
  std::map<std::pair<std::uint32_t, std::uint64_t>, Evicted> all;
  for (const Hold& hold : index.holds) {
    const Entry* entry = index.entry(hold);
    if (!hold.first_valid || entry == nullptr || !entry->evicted || !entry->gone) continue;
    const Time stopped =
        index.life(hold.client)
            .paused_between(*entry->gone, std::max(*entry->gone, *hold.last_valid));
    all[{hold.client, hold.op}] = {&hold, *entry->gone + 1s + bench.options.evict_slack + stopped};
  }
  if (all.empty()) return;
  bench.judged(Checker::overlap, all.size());
  std::map<const Hold*, Time> deadlines;  // the latest deadline named before the limit
  for (const Record& record : bench.records) {
    if (record.kind != Kind::valid) continue;
    const auto found = all.find({record.client, record.op});
    if (found == all.end() || record.at > found->second.limit) continue;
    Time& deadline = deadlines[found->second.hold];
    deadline = std::max(deadline, record.until);
  }
  for (const auto& [key, evicted] : all) {
    const Hold& hold = *evicted.hold;
    if (*hold.last_valid <= std::max(evicted.limit, deadlines[&hold])) continue;
    bench.object(Checker::overlap, *hold.last_valid,
                 index.who(hold) + " was still valid " + index.when(*hold.last_valid) + ", " +
                     in_ms(*hold.last_valid - *index.entry(hold)->gone) +
                     " after its evicted entry was gone");
  }
}

void check_revival(Bench& bench) {
  const Index& index = bench.index;
  for (const Hold& hold : index.holds) {
    const Moment end = earlier(hold.invalid, hold.lost);
    if (end) bench.judged(Checker::revival);
    if (hold.revived) {
      bench.object(Checker::revival, *hold.revived,
                   index.who(hold) + " was told of as held again " + index.when(*hold.revived));
    } else if (end && hold.last_valid && *hold.last_valid > *end) {
      bench.object(Checker::revival, *hold.last_valid,
                   index.who(hold) + " was lost or not valid " + index.when(*end) +
                       " and valid again " + index.when(*hold.last_valid));
    }
    // valid() was false and the owner still kept the lock: lost_token() must fire.
    if (!hold.invalid || hold.lost || !hold.release) continue;
    const Time stayed = *hold.release - *hold.invalid -
                        index.life(hold.client).paused_between(*hold.invalid, *hold.release);
    if (stayed <= bench.options.call_slack) continue;
    bench.object(Checker::revival, *hold.release,
                 index.who(hold) + " was not valid " + index.when(*hold.invalid) +
                     " and was not told that it had lost the lock, for " + in_ms(stayed));
  }
}

}  // namespace baton::chaos
