// Histories made by hand, for the tests of the checkers. Times are in milliseconds, counted from
// one hour after boot.
#pragma once

#include "chaos/cluster/history.h"
#include "chaos/cluster/verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace baton::chaos {

inline constexpr std::chrono::hours kStoryBegins{1};

inline std::chrono::nanoseconds story_time(std::int64_t ms) {
  return kStoryBegins + std::chrono::milliseconds(ms);
}

// The client, acquire, token and lock that a record belongs to.
struct Part {
  std::uint32_t client = 0;
  std::uint64_t op = 0;
  std::uint64_t token = 0;
  std::uint32_t lock = 0;
};

class Story {
 public:
  Story& client(const Part& part, std::int64_t at, Kind kind, std::int64_t until = -1,
                std::uint64_t value = 0, const std::string& text = {}) {
    add(at, part.client, kind, part, until, value, text);
    return *this;
  }

  Story& driver(std::int64_t at, Kind kind, const Part& part = {}, std::uint64_t value = 0,
                const std::string& text = {}, std::int64_t until = -1) {
    add(at, 0, kind, part, until, value, text);
    return *this;
  }

  // The entry was seen in the queue: the request was sent at `at`, and the answer came 2 ms later.
  Story& present(std::int64_t at, const Part& part) {
    return driver(at, Kind::present, {0, 0, part.token, part.lock}, 0, {}, at + 2);
  }
  Story& gone(std::int64_t at, const Part& part) {
    return driver(at, Kind::gone, {0, 0, part.token, part.lock});
  }
  Story& evicted(std::int64_t at, const Part& part) {
    return driver(at, Kind::evicted, {0, 0, part.token, part.lock});
  }

  // Another library has put this entry into the queue.
  Story& foreign(std::int64_t at, const Part& part) {
    return driver(at, Kind::foreign, {0, 0, part.token, part.lock});
  }

  // Asks at `asked`. Is granted and valid at `from`, with a deadline 2 s later.
  Story& takes(const Part& part, std::int64_t asked, std::int64_t from) {
    client(part, asked, Kind::asked);
    client(part, from, Kind::granted);
    return client(part, from, Kind::valid, from + 2000);
  }
  Story& still_valid(const Part& part, std::int64_t at) {
    return client(part, at, Kind::valid, at + 2000);
  }
  Story& releases(const Part& part, std::int64_t at) {
    still_valid(part, at);
    client(part, at, Kind::release);
    return client(part, at + 1, Kind::released);
  }
  Story& holds(const Part& part, std::int64_t asked, std::int64_t from, std::int64_t to) {
    return takes(part, asked, from).releases(part, to);
  }

  Verdict verdict(const JudgeOptions& options = {}) const {
    auto sorted = records_;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const Record& a, const Record& b) { return a.at < b.at; });
    return judge(sorted, options);
  }

 private:
  void add(std::int64_t at, std::uint32_t client, Kind kind, const Part& part, std::int64_t until,
           std::uint64_t value, const std::string& text) {
    records_.push_back({story_time(at), client, kind, part.op, part.lock,
                        kind == Kind::asked ? 0 : part.token,
                        until < 0 ? std::chrono::nanoseconds{} : story_time(until), value, text});
  }

  std::vector<Record> records_;
};

// Expects that this checker objects `violations` times, and that no other checker objects.
inline void expect_only(const Verdict& verdict, Checker checker, std::size_t violations = 1) {
  for (std::size_t i = 0; i < kCheckers; ++i) {
    const auto each = static_cast<Checker>(i);
    const Findings& found = verdict.of(each);
    EXPECT_EQ(found.violations, each == checker ? violations : 0U)
        << name_of(each) << ": " << (found.first.empty() ? "" : found.first.front());
  }
}

inline void expect_fine(const Verdict& verdict) { expect_only(verdict, Checker::form, 0); }

// Expects that this checker objects once. Other checkers may object for the same reason.
inline void expect_fires(const Verdict& verdict, Checker checker) {
  EXPECT_EQ(verdict.of(checker).violations, 1U) << name_of(checker);
}

}  // namespace baton::chaos
