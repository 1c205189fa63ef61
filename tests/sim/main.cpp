// baton_sim: runs seeds, replays one seed, looks for seeded bugs, attacks the deadline rules.
//   baton_sim --count 20000 --store all        runs seeds 1 to 20000 on all processors: a fifth
//                                              on zk, a fifth on etcd, the others on memory
//   baton_sim --seed 4711 --store zk --trace   replays one seed and prints its events
//   baton_sim --mutants                        fails if a seeded bug is not found
//   baton_sim --mutant blind_rejoin --seed 17 --trace
//   baton_sim --attack deadline --store zk --count 5000
// --jobs N sets the number of processes.
#include "attack.h"
#include "mutants.h"
#include "range.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

using namespace baton::sim;

int run_attack(const Options& options) {
  AttackPlan plan;
  plan.store = store_of(options, 0);
  plan.seed = options.first;
  plan.count = options.count;
  plan.tell = options.trace;
  plan.stop_at_violation = options.must_break;
  const auto result = attack(plan);
  std::printf("%llu schedules, %llu moments: the smallest margin on %s is %.3f ms\n  %s\n",
              static_cast<unsigned long long>(result.tried),
              static_cast<unsigned long long>(result.heartbeats), store_name(plan.store),
              result.margin_ms, result.schedule.c_str());
  if (result.margin_ms <= 0) std::printf("the deadline rule is broken\n");
  if (options.must_break) return result.margin_ms <= 0 ? 0 : 1;
  return result.margin_ms > 0 && result.heartbeats > options.count ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--trace") {
      options.trace = true;
      continue;
    }
    if (word == "--must-break") {
      options.must_break = true;
      continue;
    }
    if (word == "--mutants") {
      options.mutants = true;
      continue;
    }
    ++i;
    if (word == "--seed" || word == "--first") {
      options.first = std::strtoull(value, nullptr, 10);
    } else if (word == "--count") {
      options.count = std::strtoull(value, nullptr, 10);
    } else if (word == "--jobs") {
      options.jobs = std::strtoull(value, nullptr, 10);
    } else if (word == "--mutant") {
      options.mutant = value;
    } else if (word == "--store") {
      options.store = value;
    } else if (word == "--quirks") {
      options.quirks = value;
    } else if (word == "--attack") {
      options.attack = value;
    } else {
      std::fprintf(
          stderr,
          "usage: baton_sim [--store memory|zk|etcd|all] [--seed N] [--count N] "
          "[--jobs N] [--trace] [--quirks A,B] [--mutant NAME] [--mutants] [--attack deadline] "
          "[--must-break]\n");
      return 64;
    }
  }
  if (options.mutants) {
    return hunt_mutants(options.mutant != "none" ? options.mutant : options.store);
  }
  if (!activate(options.mutant)) {
    std::fprintf(stderr, "no such seeded bug: %s\n", options.mutant.c_str());
    return 64;
  }
  return options.attack.empty() ? run_range(options) : run_attack(options);
}
