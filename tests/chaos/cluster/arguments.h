// What the driver is asked to do.
#pragma once

#include "chaos/cluster/run.h"
#include "chaos/cluster/verdict.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace baton::chaos {

// A defence that is switched off, and who must notice.
struct Control {
  std::string name;
  std::vector<Checker> checkers;
};

struct Arguments {
  std::vector<std::string> stores;  // "zk", "etcd"
  RunPlan plan;
  std::vector<Control> controls;   // none: everything is on
  bool keep = false;               // the directory, whatever the verdict
  std::uint64_t least_faults = 0;  // of each store
  std::uint64_t least_grants = 0;  // of all
  std::string report;              // a file; empty: none
  std::string replay;              // the command
};

// Throws std::invalid_argument.
Arguments parse_arguments(int argc, char** argv);

}  // namespace baton::chaos
