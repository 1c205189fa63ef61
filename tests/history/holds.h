// The history of one lock, and the checkers of exclusion and order. All tests that check a history
// use this record and these checkers. The simulator does not check histories: it compares every
// hold with the store at every instant (tests/sim/checkers.cpp), which finds more.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <ostream>
#include <string>
#include <vector>

namespace baton::history {

using Time = std::chrono::nanoseconds;

enum class Ending { released, lost, killed };

// One hold, from `granted` to `left`. Both times lie inside the hold, so two records overlap only
// if two clients held the lock at once. All times of a history are on one clock. Zero means not
// known.
struct Hold {
  Time granted{};  // after the grant
  Time left{};     // before the release, or the last moment in which the hold was valid
  std::uint64_t token = 0;
  std::string who{};
  std::uint64_t number = 0;  // chosen by the writer: the turn of `who`, the index of a record, ...
  Time asked{};              // before the acquire
  Time joined{};             // the entry was certainly in the queue
  Ending ending = Ending::released;
  std::string entry{};  // its name in the store
};
using Holds = std::vector<Hold>;

// Two of the checked holds that break a promise, in the order of their grants. If `later` breaks it
// alone, because it has no token, `earlier` is an empty record.
struct Conflict {
  const Hold* earlier;
  const Hold* later;
};
using Conflicts = std::vector<Conflict>;
std::ostream& operator<<(std::ostream& out, const Conflict& conflict);  // times in ms

// Exclusion: all pairs of holds that overlap.
Conflicts overlaps(const Holds& holds);
// Token order: finds each hold whose token is not greater than the tokens of all earlier grants.
// Pairs it with the earliest grant whose token is not smaller.
Conflicts inversions(const Holds& holds);
// First in, first out: finds each hold that was in the queue before the acquire of an earlier grant
// began. Pairs it with the earliest such grant. This check uses clocks only, no tokens.
Conflicts overtaken(const Holds& holds);
// Exclusion and token order: the results of overlaps(), then of inversions().
Conflicts conflicts(const Holds& holds);
// A conflict points into the checked holds, so they must live longer than the conflict.
Conflicts overlaps(const Holds&& holds) = delete;
Conflicts inversions(const Holds&& holds) = delete;
Conflicts overtaken(const Holds&& holds) = delete;
Conflicts conflicts(const Holds&& holds) = delete;

::testing::AssertionResult none(const Conflicts& found);
::testing::AssertionResult exclusive_and_ordered(const Holds& holds);
// Tokens increase from grant to grant, and so do the sequence numbers at the end of entry names.
::testing::AssertionResult in_order_of_arrival(const Holds& holds);

// Reads a file with one hold per line: WHO NUMBER ASKED JOINED GRANTED LEFT TOKEN ENTRY. Times are
// in nanoseconds, an unknown time is 0, an unknown entry is "-".
Holds read(const std::string& path);

// Collects the holds of several threads.
class Log {
 public:
  void add(Hold hold);
  void add(const Holds& holds);
  Holds all() const;
  std::size_t size() const;

 private:
  mutable std::mutex mutex_;
  Holds all_;
};

}  // namespace baton::history
