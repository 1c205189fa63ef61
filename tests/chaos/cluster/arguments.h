// The command line of baton_chaos.
#pragma once

#include "chaos/cluster/run.h"
#include "chaos/cluster/verdict.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace baton::chaos {

// A protection that is switched off, and the checkers that must object.
struct Control {
  std::string name;
  std::vector<Checker> checkers;
};

struct Arguments {
  std::vector<std::string> stores;  // "zk", "etcd"
  RunPlan plan;
  std::vector<Control> controls;   // empty: all protections are on
  bool keep = false;               // keep the directory, whatever the verdict is
  std::uint64_t least_faults = 0;  // required faults on each store
  std::uint64_t least_grants = 0;  // required grants on all stores together
  std::string report;              // path of the report; empty: none
  std::string replay;              // the command that repeats this run
};

// Throws std::invalid_argument.
Arguments parse_arguments(int argc, char** argv);

}  // namespace baton::chaos
