// The verdict over a kill stress.
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
  double at(double share) const;  // milliseconds: 0.5 the median, 1 the longest
};

struct Findings {
  std::size_t grants = 0;
  std::size_t holders_killed = 0;
  std::size_t overlaps = 0;    // pairs
  std::size_t inversions = 0;  // a grant whose token is not above those of all grants before
  std::size_t sighted = 0;     // grants that were seen waiting before
  std::size_t overtaken = 0;   // of those: somebody who asked later was served first
  std::size_t slow = 0;        // kills after which nobody was granted in time
  std::size_t unended = 0;     // holds without an end whose worker was not killed
  Delays after_holder;         // from the kill of a holder to the next grant, pauses subtracted
  Delays after_any;            // the same for all kills
  Delays raw;                  // the same for all kills, nothing subtracted
  std::vector<std::string> details;  // the first few of each kind
};

// When a killed hold ends. At its reaping is too late: the kernel closes the files of a process,
// and so frees the lock, before the parent can reap it; a grant in between is right. At its kill is
// too early: kill() returns before its target has stopped, and what that does until then counts. So
// a killed hold ends with the last stamp its holder wrote, and never before the kill was sent:
// without an end on record it had not begun to release.
//
// Order: tokens are handed out when the store queues an entry, so grants by time must have
// increasing tokens. As a witness without tokens' word for it: who was seen waiting is served
// before everybody who asked later than that.
Findings check(const Ledger& ledger, const std::vector<Kill>& kills,
               const std::vector<Pause>& pauses, std::chrono::nanoseconds limit);

}  // namespace baton::chaos
