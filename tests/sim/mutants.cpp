#include "mutants.h"

#include "attack.h"
#include "common/base/mutant.h"

#include <cstdio>
#include <string>
#include <utility>

namespace baton::internal {
Mutant active_mutant = Mutant::none;
}

namespace baton::sim {

Bug active_bug = Bug::none;

namespace {

constexpr std::uint64_t kMost = 10'000;

// Returns the number of seeds or schedules until the bug was found. 0: it was not found.
std::uint64_t hunt(const SeededBug& bug, std::string& caught) {
  if (bug.attack) {
    AttackPlan plan;
    plan.store = bug.store;
    plan.count = kMost;
    plan.stop_at_violation = true;
    const auto found = attack(plan);
    caught = "the search found a margin of " + std::to_string(found.margin_ms) + " ms";
    return found.margin_ms <= 0 ? found.tried : 0;
  }
  for (std::uint64_t seed = 1; seed <= kMost; ++seed) {
    Wish wish;
    wish.store = bug.store;
    auto outcome = run_seed(seed, wish);
    if (outcome.failure.empty()) continue;
    caught = std::move(outcome.failure);
    // The seed must pass without the bug. Otherwise it does not prove that the bug was found.
    const Bug bug_on = active_bug;
    activate(Bug::none);
    const bool innocent = run_seed(seed, wish).failure.empty();
    activate(bug_on);
    if (!innocent) {
      caught = "seed " + std::to_string(seed) + " fails without it";
      return 0;
    }
    return seed;
  }
  return 0;
}

}  // namespace

void activate(Bug bug) {
  using internal::Mutant;
  active_bug = bug;
  internal::active_mutant = Mutant::none;
  if (bug == Bug::deadline_from_answer) internal::active_mutant = Mutant::deadline_from_answer;
  if (bug == Bug::contract_rule_alone) internal::active_mutant = Mutant::contract_rule_alone;
}

bool activate(std::string_view name) {
  for (std::size_t i = 0; i < kSeededBugs.size(); ++i) {
    if (name != kSeededBugs[i].name) continue;
    activate(static_cast<Bug>(i));
    return true;
  }
  return false;
}

int hunt_mutants(std::string_view only) {
  int hunted = 0;
  int survivors = 0;
  for (std::size_t i = 1; i < kSeededBugs.size(); ++i) {
    const SeededBug& bug = kSeededBugs[i];
    if (!only.empty() && only != store_name(bug.store) && only != bug.name) continue;
    if (!available(bug.store)) continue;
    activate(bug.name);
    std::string caught;
    const auto seeds = hunt(bug, caught);
    ++hunted;
    if (seeds == 0) {
      ++survivors;
      std::printf("%-3s %-22s SURVIVED %llu %s\n", bug.number, bug.name,
                  static_cast<unsigned long long>(kMost), caught.c_str());
    } else {
      std::printf("%-3s %-22s caught on %s after %llu: %s\n", bug.number, bug.name,
                  store_name(bug.store), static_cast<unsigned long long>(seeds), caught.c_str());
    }
    std::fflush(stdout);
  }
  activate(Bug::none);
  std::printf("%d seeded bugs, %d survived\n", hunted, survivors);
  return survivors == 0 && hunted != 0 ? 0 : 1;
}

}  // namespace baton::sim
