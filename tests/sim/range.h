// Runs many seeds, one after the other or on several processors.
#pragma once

#include "simulation.h"

#include <cstdint>
#include <string>

namespace baton::sim {

struct Options {
  std::uint64_t first = 1;
  std::uint64_t count = 1;
  std::uint64_t jobs = 0;  // 0: one for each processor if there are many seeds
  bool trace = false;
  bool mutants = false;
  std::string mutant = "none";
  std::string store;  // "": the memory store; with --mutants, all stores
  std::string quirks = "drawn";
  std::string attack;
  bool must_break = false;  // the attack must find that the rule is broken
};

StoreKind store_of(const Options& options, std::uint64_t seed);

// Runs the seeds and prints the result. Returns the exit code: 0 if no check failed.
int run_range(const Options& options);

}  // namespace baton::sim
