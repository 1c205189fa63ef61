// Compares the states of a watch with a table of every legal transition, and shows that the table
// leads to every state.
#include "etcd/watch_state.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

namespace baton::etcd {
namespace {

using S = WatchState;
using E = WatchStep;

constexpr int kWatchStates = static_cast<int>(S::over) + 1;
constexpr int kWatchSteps = static_cast<int>(E::finished) + 1;

// A pair that is not in the table is not a legal transition.
const std::map<std::pair<S, E>, S>& watch_table() {
  static const std::map<std::pair<S, E>, S> rows{
      {{S::delayed, E::begin}, S::starting},
      {{S::delayed, E::finished}, S::over},

      {{S::starting, E::begin_anew}, S::starting},
      {{S::starting, E::create_sent}, S::starting},
      {{S::starting, E::accepted_at_known}, S::live},
      {{S::starting, E::accepted}, S::live},
      {{S::starting, E::accepted_unchecked}, S::checking},
      {{S::starting, E::key_found}, S::starting},
      {{S::starting, E::refused_by_server}, S::refused},
      {{S::starting, E::finished}, S::over},

      {{S::checking, E::create_sent}, S::starting},
      {{S::checking, E::accepted}, S::live},
      {{S::checking, E::accepted_unchecked}, S::checking},
      {{S::checking, E::key_found}, S::live},
      {{S::checking, E::refused_by_server}, S::refused},
      {{S::checking, E::finished}, S::over},

      {{S::live, E::begin_anew}, S::starting},
      {{S::live, E::create_sent}, S::starting},
      {{S::live, E::accepted_at_known}, S::live},
      {{S::live, E::key_found}, S::live},
      {{S::live, E::refused_by_server}, S::refused},
      {{S::live, E::finished}, S::over},

      {{S::refused, E::begin}, S::starting},
      {{S::refused, E::begin_anew}, S::starting},
      {{S::refused, E::key_found}, S::refused},
      {{S::refused, E::finished}, S::over},
  };
  return rows;
}

TEST(EtcdWatchState, EveryPairOfStateAndEventIsAsInTheTable) {
  for (int s = 0; s < kWatchStates; ++s) {
    for (int e = 0; e < kWatchSteps; ++e) {
      const auto row = watch_table().find({static_cast<S>(s), static_cast<E>(e)});
      const auto expected = row == watch_table().end() ? std::nullopt : std::optional(row->second);
      EXPECT_EQ(next_state(static_cast<S>(s), static_cast<E>(e)), expected)
          << "state " << s << ", event " << e;
    }
  }
}

TEST(EtcdWatchState, EveryStateCanBeReachedAndLeft) {
  std::set<S> reached{S::delayed};
  for (bool more = true; more;) {
    more = false;
    for (const auto& [pair, to] : watch_table()) {
      if (reached.contains(pair.first)) more |= reached.insert(to).second;
    }
  }
  EXPECT_EQ(reached.size(), static_cast<std::size_t>(kWatchStates));
  for (const S state : reached) {
    bool left = state == S::over;
    for (const auto& [pair, to] : watch_table()) left |= pair.first == state && to != state;
    EXPECT_TRUE(left) << "state " << static_cast<int>(state);
  }
}

TEST(EtcdWatchState, OnlyTheServerOrALookMakesAWatchLive) {
  for (const auto& [pair, to] : watch_table()) {
    if (to != S::live || pair.first == S::live) continue;
    EXPECT_TRUE(pair.second == E::accepted_at_known || pair.second == E::accepted ||
                pair.second == E::key_found)
        << "state " << static_cast<int>(pair.first) << ", event " << static_cast<int>(pair.second);
  }
}

TEST(EtcdWatchState, WatchIsResumedWhenItContinuesOnASecondStream) {
  using C = Continuity;
  for (const E first : {E::accepted_at_known, E::accepted, E::accepted_unchecked}) {
    EXPECT_EQ(next_continuity(C::never_accepted, first), C::unbroken);
  }
  EXPECT_EQ(next_continuity(C::unbroken, E::accepted_at_known), C::resumed);
  for (const E later : {E::accepted, E::accepted_unchecked}) {
    EXPECT_EQ(next_continuity(C::unbroken, later), C::unbroken);
    EXPECT_EQ(next_continuity(C::resumed, later), C::resumed);
  }
  for (int e = 0; e < kWatchSteps; ++e) {
    const E step = static_cast<E>(e);
    if (step == E::accepted_at_known || step == E::accepted || step == E::accepted_unchecked) {
      continue;
    }
    for (const C before : {C::never_accepted, C::unbroken, C::resumed}) {
      EXPECT_EQ(next_continuity(before, step), before) << "event " << e;
    }
  }
}

}  // namespace
}  // namespace baton::etcd
