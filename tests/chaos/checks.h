// Checks the records of a kill stress.
#pragma once

#include "chaos/heartbeat.h"
#include "chaos/ledger.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace baton::chaos {

struct Kill {
  std::uint32_t worker = 0;
  std::chrono::nanoseconds sent{};  // just before the signal
};

// Delays in nanoseconds, sorted.
struct Delays {
  std::vector<std::int64_t> all;
  double at(double share) const;  // milliseconds; 0.5: the median, 1: the longest
};

struct Findings {
  std::size_t grants = 0;
  std::size_t holders_killed = 0;
  std::size_t overlaps = 0;    // pairs of holds
  std::size_t inversions = 0;  // grants whose token is not greater than those of all earlier grants
  std::size_t sighted = 0;     // grants whose entry was seen waiting before
  std::size_t overtaken = 0;   // of those: grants after that of a worker that asked later
  std::size_t slow = 0;        // kills after which the next grant came too late or never
  std::size_t unended = 0;     // holds without an end whose worker was not killed
  Delays after_holder;         // from the kill of a holder to the next grant, pauses subtracted
  Delays after_any;            // the same for all kills
  Delays raw;                  // the same for all kills, nothing subtracted
  std::vector<std::string> details;  // the first of each kind
};

// The end of the hold of a killed worker. The time of its reaping is too late: the kernel closes
// the files of the process, and so frees the lock, before the parent can reap it, and a grant in
// between is correct. The time of its kill is too early: kill() returns before its target has
// stopped, and what the target does until then counts. So the hold ends with the last stamp that
// the holder wrote, but not before the kill was sent: without an end on record the holder had not
// begun to release.
//
// Order: the store gives out tokens when it queues entries, so the tokens of grants must rise over
// time. A second check does not use tokens: a worker that was seen waiting is granted the lock
// before all workers that asked after that.
Findings check(const Ledger& ledger, const std::vector<Kill>& kills,
               const std::vector<Pause>& pauses, std::chrono::nanoseconds limit);

}  // namespace baton::chaos
