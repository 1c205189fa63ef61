// Checks the order of grants: by token, and by the clock.
#include "chaos/cluster/holds.h"

#include <algorithm>

namespace baton::chaos {
namespace {

// True if the entry went while the answer with the grant was under way. If nobody evicted the
// entry, it is wrong to be valid then, and early-loss objects.
bool heard_too_late(const Index& index, const Hold& hold) {
  const Entry* entry = index.entry(hold);
  if (entry == nullptr) return false;
  const Moment end = earlier(entry->evicted, entry->gone);
  return end && *end <= *hold.first_valid;
}

// Witness by the clock: B asked after A's entry had been seen in the queue, and is valid before A.
void check_by_clock(Bench& bench, history::Holds holds) {
  const Index& index = bench.index;
  for (history::Hold& each : holds) {
    const Hold& hold = index.holds[each.number];
    const Entry* entry = index.entry(hold);
    if (entry == nullptr || !entry->seen || heard_too_late(index, hold)) continue;
    bench.judged(Checker::fifo);
    each.joined = *entry->seen;
  }
  for (const auto& [next, late] : history::overtaken(holds)) {
    const Hold& hold = index.holds[late->number];
    bench.object(Checker::fifo, next->granted,
                 index.who(index.holds[next->number]) + " asked " + index.when(next->asked) +
                     " and was valid " + index.when(next->granted) + ", before " + index.who(hold) +
                     ", who was seen in line " + index.when(late->joined) + " and was valid " +
                     index.when(late->granted),
                 &hold);
  }
}

}  // namespace

void check_tokens(Bench& bench) {
  const Index& index = bench.index;
  for (const auto& [lock, list] : index.grants) {
    const auto holds = index.proven(list);
    bench.judged(Checker::tokens, holds.size());
    for (const auto& [before, later] : history::inversions(holds)) {
      const Hold& hold = index.holds[later->number];
      if (later->token == before->token) continue;  // checked below
      if (heard_too_late(index, hold)) continue;
      bench.object(Checker::tokens, later->granted,
                   index.who(hold) + " was valid " + index.when(later->granted) + ", after " +
                       index.who(index.holds[before->number]) + " was " +
                       index.when(before->granted),
                   &hold);
    }
  }
  // Tokens must also be unique for holds that were never proven valid.
  std::map<std::pair<std::uint32_t, std::uint64_t>, const Hold*> owners;
  for (const Hold& hold : index.holds) {
    if (!hold.granted) continue;
    const auto [owner, fresh] = owners.try_emplace({hold.lock, hold.token}, &hold);
    if (fresh) continue;
    bench.object(Checker::tokens, *hold.granted,
                 index.who(hold) + " was granted " + index.when(*hold.granted) +
                     " with the token of " + index.who(*owner->second));
  }
}

void check_fifo(Bench& bench) {
  const Index& index = bench.index;
  for (const auto& [lock, list] : index.grants) {
    std::vector<EarliestAbove::Item> items;
    for (const std::size_t number : list) {
      const Hold& hold = index.holds[number];
      items.push_back({hold.token, *hold.first_valid, &hold});
    }
    const EarliestAbove by_token(std::move(items));
    for (auto it = index.entries.lower_bound({lock, 0});
         it != index.entries.end() && it->first.first == lock; ++it) {
      const auto& [key, entry] = *it;
      if (!entry.present) continue;
      bench.judged(Checker::fifo);
      const auto* next = by_token.find(key.second);
      if (next == nullptr || next->at > *entry.present) continue;
      bench.object(Checker::fifo, next->at,
                   index.who(*next->hold) + " was valid " + index.when(next->at) +
                       " while the entry with token " + std::to_string(key.second) +
                       " was in front of it: it was still there " + index.when(*entry.present));
    }
    check_by_clock(bench, index.proven(list));
  }
}

}  // namespace baton::chaos
