// One chaos run on one cluster.
#pragma once

#include "chaos/cluster/cluster.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace baton::chaos {

struct RunPlan {
  std::string worker;                      // the client program
  std::string clock_library;               // see CrewPlan
  std::string directory;                   // for the histories; must exist and be empty
  std::chrono::seconds time{150};          // duration of the faults
  std::chrono::milliseconds calm{12'000};  // time after the faults: all clients must continue
  std::chrono::milliseconds every{1'500};  // approximate time between two faults
  std::uint64_t seed = 1;
  int clients = 16;
  int locks = 4;
  int threads = 2;
  std::set<std::string> only;  // names of the kinds of faults; empty: all kinds
  // The protection that is switched off. If it is set, there are no faults except that holders
  // are stopped.
  std::string control;
};

struct RunResult {
  std::uint64_t faults = 0;
  std::map<std::string, int> kinds;
  std::chrono::milliseconds latest{0};  // the longest delay with which a sleeping thread was woken
  std::vector<std::string> problems;    // errors of processes, servers and faults, not violations
};

// Starts clients, injects faults, removes them, and ends the clients. The histories record
// everything that happened.
RunResult run_chaos(Cluster& cluster, const RunPlan& plan);

}  // namespace baton::chaos
