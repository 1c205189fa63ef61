// The order of grants: by token, and by who was in line before.
#include "chaos/cluster/holds.h"

#include <algorithm>

namespace baton::chaos {
namespace {

// Whose word of the grant was under way when its entry went. If nobody evicted it, to be valid then
// is wrong, and early-loss says so.
bool heard_too_late(const Index& index, const Hold& hold) {
  const Entry* entry = index.entry(hold);
  if (entry == nullptr) return false;
  const Moment end = earlier(entry->evicted, entry->gone);
  return end && *end <= *hold.first_valid;
}

// The clock's word: B asked after A's entry had been seen in line, and is proven valid before A.
void check_by_clock(Bench& bench, const std::vector<std::size_t>& list) {
  const Index& index = bench.index;
  std::vector<EarliestAbove::Item> items;
  for (const std::size_t number : list) {
    const Hold& hold = index.holds[number];
    if (!hold.asked) continue;
    items.push_back({static_cast<std::uint64_t>(hold.asked->count()), *hold.first_valid, &hold});
  }
  const EarliestAbove by_asking(std::move(items));
  for (const std::size_t number : list) {
    const Hold& hold = index.holds[number];
    const Entry* entry = index.entry(hold);
    if (entry == nullptr || !entry->seen || heard_too_late(index, hold)) continue;
    bench.judged(Checker::fifo);
    const auto* next = by_asking.find(static_cast<std::uint64_t>(entry->seen->count()));
    if (next == nullptr || next->at >= *hold.first_valid) continue;
    bench.object(Checker::fifo, next->at,
                 index.who(*next->hold) + " asked " + index.when(*next->hold->asked) +
                     " and was valid " + index.when(next->at) + ", before " + index.who(hold) +
                     ", who was seen in line " + index.when(*entry->seen) + " and was valid " +
                     index.when(*hold.first_valid),
                 &hold);
  }
}

}  // namespace

void check_tokens(Bench& bench) {
  const Index& index = bench.index;
  for (const auto& [lock, list] : index.grants) {
    const Hold* greatest = nullptr;
    for (const std::size_t number : list) {
      const Hold& hold = index.holds[number];
      bench.judged(Checker::tokens);
      if (greatest != nullptr && hold.token < greatest->token && !heard_too_late(index, hold)) {
        bench.object(Checker::tokens, *hold.first_valid,
                     index.who(hold) + " was valid " + index.when(*hold.first_valid) + ", after " +
                         index.who(*greatest) + " was " + index.when(*greatest->first_valid),
                     &hold);
      }
      if (greatest == nullptr || hold.token > greatest->token) greatest = &hold;
    }
  }
  // Uniqueness counts for what was never proven valid too.
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
    check_by_clock(bench, list);
  }
}

}  // namespace baton::chaos
