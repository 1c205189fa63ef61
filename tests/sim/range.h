// Many seeds, one after the other, or on several processors.
#pragma once

#include "simulation.h"

#include <cstdint>
#include <string>

namespace baton::sim {

struct Options {
  std::uint64_t first = 1;
  std::uint64_t count = 1;
  std::uint64_t jobs = 0;  // 0: as many as there are processors, if it is worth it
  bool trace = false;
  bool mutants = false;
  std::string mutant = "none";
  std::string store;  // "": memory, and all of them for seeded bugs
  std::string quirks = "drawn";
  std::string attack;
  bool must_break = false;  // the attack is to find that the rule is wrong
};

StoreKind store_of(const Options& options, std::uint64_t seed);

// Runs them and tells. The exit code: 0 if nothing was violated.
int run_range(const Options& options);

}  // namespace baton::sim
