// One run of chaos on one cluster.
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
  std::string worker;                      // the program of the clients
  std::string clock_library;               // CrewPlan
  std::string directory;                   // for the histories; exists, and is empty
  std::chrono::seconds time{150};          // of faults
  std::chrono::milliseconds calm{12'000};  // after them: everybody must go on
  std::chrono::milliseconds every{1'500};  // between a fault and the next, about
  std::uint64_t seed = 1;
  int clients = 16;
  int locks = 4;
  int threads = 2;
  std::set<std::string> only;  // names of the kinds of faults; empty: all of them
  std::string control;  // a defence that is switched off: then holders are paused, and no more
};

struct RunResult {
  std::uint64_t faults = 0;
  std::map<std::string, int> kinds;
  std::chrono::milliseconds latest{0};  // so late a thread that only sleeps was woken, at worst
  std::vector<std::string> problems;    // of processes, servers and faults; not of locks
};

// Starts clients, breaks things, heals them, and ends the clients. All that happened is in the
// histories.
RunResult run_chaos(Cluster& cluster, const RunPlan& plan);

}  // namespace baton::chaos
