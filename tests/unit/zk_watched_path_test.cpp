// Compares the states of a watched path with a table of every legal transition, and shows that the
// table leads to every state.
#include "zk/watched_path.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <utility>

namespace baton::zk {
namespace {

using W = WatchState;
using P = WatchProgress;

constexpr int kWatchStates = static_cast<int>(W::over) + 1;
constexpr int kWatchEvents = static_cast<int>(P::lane_ended) + 1;

// A pair that is not in the table is not a legal transition.
const std::map<std::pair<W, P>, W>& watch_table() {
  static const std::map<std::pair<W, P>, W> rows{
      {{W::delayed, P::ask}, W::asked},          {{W::delayed, P::unwanted}, W::over},

      {{W::asked, P::answer_ok}, W::armed},      {{W::asked, P::answer_lost}, W::delayed},
      {{W::asked, P::answer_other}, W::refused}, {{W::asked, P::answer_final}, W::over},
      {{W::asked, P::unwanted}, W::asked},       {{W::asked, P::lane_ended}, W::over},

      {{W::armed, P::changed}, W::delayed},      {{W::armed, P::gone}, W::over},
      {{W::armed, P::unwanted}, W::over},        {{W::armed, P::lane_ended}, W::over},

      {{W::refused, P::unwanted}, W::over},      {{W::refused, P::pause_over}, W::over},
      {{W::refused, P::lane_ended}, W::over},
  };
  return rows;
}

TEST(ZkWatchedPath, EveryPairOfStateAndEventIsAsInTheTable) {
  for (int s = 0; s < kWatchStates; ++s) {
    for (int e = 0; e < kWatchEvents; ++e) {
      const auto row = watch_table().find({static_cast<W>(s), static_cast<P>(e)});
      const auto expected = row == watch_table().end() ? std::nullopt : std::optional(row->second);
      EXPECT_EQ(next_state(static_cast<W>(s), static_cast<P>(e)), expected)
          << "state " << s << ", event " << e;
    }
  }
}

TEST(ZkWatchedPath, EveryStateCanBeReachedAndLeft) {
  std::set<W> reached{W::delayed};
  for (bool more = true; more;) {
    more = false;
    for (const auto& [pair, to] : watch_table()) {
      if (reached.contains(pair.first)) more |= reached.insert(to).second;
    }
  }
  EXPECT_EQ(reached.size(), static_cast<std::size_t>(kWatchStates));
  for (const W state : reached) {
    bool left = state == W::over;
    for (const auto& [pair, to] : watch_table()) left |= pair.first == state && to != state;
    EXPECT_TRUE(left) << "state " << static_cast<int>(state);
  }
}

TEST(ZkWatchedPath, AWatchIsArmedOnlyByTheAnswerToItsRequest) {
  for (const auto& [pair, to] : watch_table()) {
    if (to != W::armed) continue;
    EXPECT_EQ(pair, std::make_pair(W::asked, P::answer_ok));
  }
}

TEST(ZkWatchedPath, APathThatIsOverStaysOver) {
  for (const auto& [pair, to] : watch_table()) EXPECT_NE(pair.first, W::over);
}

}  // namespace
}  // namespace baton::zk
