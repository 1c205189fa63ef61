// What contenders of several libraries did on one lock, and the checks over it.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace baton::interop {

// One line of a history: WHO TURN CALL JOINED GRANTED RELEASED TOKEN ENTRY. Times in nanoseconds on
// CLOCK_MONOTONIC. A hold is [granted, released]: stamped after its grant and before its release,
// so two of them overlap only if two held at once.
struct Turn {
  std::string who;
  int number = 0;             // 1, 2, ...
  std::int64_t call = 0;      // just before acquire
  std::int64_t joined = 0;    // the entry was surely in the queue; 0: the library does not tell
  std::int64_t granted = 0;   // acquire returned
  std::int64_t released = 0;  // just before release
  std::uint64_t token = 0;    // czxid of the entry, create revision of the key
  std::string entry = "-";    // its name; "-": the library does not tell
};

class History {
 public:
  explicit History(std::vector<Turn> turns);
  static History from_file(const std::string& path);

  // Everybody had all its turns, and nobody else had any.
  ::testing::AssertionResult complete(const std::vector<std::string>& who, int turns) const;
  // No two holds overlap.
  ::testing::AssertionResult exclusive() const;
  // Grants follow the order in which the server serialised the entries: tokens increase from grant
  // to grant, whoever is granted, and so do the sequence numbers of the entries that are known.
  ::testing::AssertionResult in_order_of_arrival() const;
  // From when X is surely in the queue to its grant, each other has at most one turn: that of the
  // entry it already had in front of X. By the clock alone, without the word of any token.
  ::testing::AssertionResult nobody_is_overtaken() const;
  // Nobody starves; see history.cpp for the bound.
  ::testing::AssertionResult evenly_shared() const;

  std::size_t overlaps() const;
  // Turns of one contender between two turns of another, while all contend: how often each number.
  std::map<int, int> gaps() const;
  std::string summary() const;

 private:
  // Who missed the most turns of others between two of its own, and where the time went.
  std::string longest_absence() const;

  std::vector<Turn> turns_;  // sorted by grant
};

}  // namespace baton::interop
