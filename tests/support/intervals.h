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
#include <string>
#include <vector>

namespace baton::test {

// One hold: [begin, end] on the boot clock, begin taken after the grant, end before the release.
struct Interval {
  std::chrono::nanoseconds begin{};
  std::chrono::nanoseconds end{};
  std::uint64_t token = 0;
};

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

  // Sorted by begin: no two overlap, and tokens strictly increase. overlap: what a store that takes
  // locks away before their time is allowed, that two overlap by no more than this; and that a hold
  // which was taken away before its holder had heard of it begins so much after the next one.
  ::testing::AssertionResult exclusive_and_ordered(std::chrono::nanoseconds overlap = {}) const {
    const std::lock_guard guard(mutex_);
    auto sorted = all_;
    std::sort(sorted.begin(), sorted.end(),
              [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
    std::size_t last = 0;  // of those before, the one that ended last
    std::size_t known =
        0;  // those before it began early enough to count, and the highest of them is
    std::uint64_t highest = 0;
    for (std::size_t i = 1; i < sorted.size(); ++i) {
      const auto& a = sorted[last];
      const auto& b = sorted[i];
      if (a.end - b.begin > overlap) {
        return ::testing::AssertionFailure()
               << "holds " << last << " (token " << a.token << ") and " << i << " (token "
               << b.token << ") of " << sorted.size() << " overlap by " << (a.end - b.begin).count()
               << " ns";
      }
      for (; known < i && sorted[known].begin + overlap <= b.begin; ++known) {
        highest = std::max<std::uint64_t>(highest, sorted[known].token);
      }
      if (b.token <= highest) {
        return ::testing::AssertionFailure()
               << "hold " << i << " has token " << b.token << " after token " << highest;
      }
      if (b.end > a.end) last = i;
    }
    return ::testing::AssertionSuccess();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Interval> all_;
};

}  // namespace baton::test
