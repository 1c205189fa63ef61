// The checkers of exclusion and order: who held when, and with which token.
#pragma once

#include "support/boot_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <mutex>
#include <ostream>
#include <string>
#include <vector>

namespace baton::test {

// One hold: [begin, end] on the boot clock, begin taken after the grant, end before the release.
struct Interval {
  std::chrono::nanoseconds begin{};
  std::chrono::nanoseconds end{};
  std::uint64_t token = 0;
  bool lost = false;  // it was taken away, and its owner told so; not given back
};

// `late` was valid after `next` had begun, whose token is higher; or both have the same token.
struct Conflict {
  Interval late;
  Interval next;
};
inline std::ostream& operator<<(std::ostream& out, const Conflict& conflict) {
  const auto ms = [](std::chrono::nanoseconds time) {
    return std::chrono::duration<double, std::milli>(time).count();
  };
  return out << "the hold with token " << conflict.late.token << " began "
             << ms(conflict.late.begin - conflict.next.begin) << " ms and was valid "
             << ms(conflict.late.end - conflict.next.begin) << " ms after the one with token "
             << conflict.next.token << " had begun"
             << (conflict.late.lost ? "; it was lost" : "; it was not lost");
}

class Intervals {
 public:
  void add(Interval interval) {
    const std::lock_guard guard(mutex_);
    all_.push_back(interval);
  }
  // The holds that `baton_test_child loop` put on record.
  void add_file(const std::string& path) {
    std::ifstream file(path);
    for (long long begin = 0, end = 0, token = 0; file >> begin >> end >> token;) {
      add({std::chrono::nanoseconds(begin), std::chrono::nanoseconds(end),
           static_cast<std::uint64_t>(token)});
    }
  }
  std::size_t size() const {
    const std::lock_guard guard(mutex_);
    return all_.size();
  }

  // Where two overlap, or a token is not higher than all that began before: for each hold that was
  // valid too late the earliest of those that should have come after it.
  std::vector<Conflict> conflicts() const {
    const std::lock_guard guard(mutex_);
    auto sorted = all_;
    std::sort(sorted.begin(), sorted.end(),
              [](const Interval& a, const Interval& b) { return a.token < b.token; });
    std::vector<Conflict> found;
    for (std::size_t i = sorted.size(), earliest = i; i-- > 0;) {
      const bool twice = i + 1 < sorted.size() && sorted[i].token == sorted[i + 1].token;
      if (twice) {
        found.push_back({sorted[i], sorted[i + 1]});
      } else if (earliest < sorted.size() && sorted[i].end > sorted[earliest].begin) {
        found.push_back({sorted[i], sorted[earliest]});
      }
      if (earliest == sorted.size() || sorted[i].begin < sorted[earliest].begin) earliest = i;
    }
    return found;
  }

  // No two overlap, and tokens strictly increase.
  ::testing::AssertionResult exclusive_and_ordered() const {
    const auto found = conflicts();
    if (found.empty()) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure()
           << found.size() << " of " << size() << " holds: " << found.back();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Interval> all_;
};

}  // namespace baton::test
