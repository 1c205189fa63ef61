// Compares the states of the keepalives with a table of every legal transition, and shows that the
// table leads to every state.
#include "etcd/beat_state.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

namespace baton::etcd {
namespace {

constexpr int kBeatStates = static_cast<int>(BeatState::closed) + 1;
constexpr int kBeatEvents = static_cast<int>(BeatEvent::close) + 1;

// A pair that is not in the table is not a legal transition.
const std::map<std::pair<BeatState, BeatEvent>, BeatState>& beat_table() {
  using S = BeatState;
  using E = BeatEvent;
  static const std::map<std::pair<S, E>, S> rows{
      {{S::idle, E::planned}, S::scheduled},
      {{S::idle, E::close}, S::closed},

      {{S::scheduled, E::planned}, S::scheduled},
      {{S::scheduled, E::renewal_sent}, S::renewing},
      {{S::scheduled, E::token_missing}, S::awaiting_token},
      {{S::scheduled, E::beat_sent}, S::beating},
      {{S::scheduled, E::close}, S::closed},

      {{S::renewing, E::planned}, S::scheduled},
      {{S::renewing, E::renewal_sent}, S::renewing},
      {{S::renewing, E::token_missing}, S::awaiting_token},
      {{S::renewing, E::beat_sent}, S::beating},
      {{S::renewing, E::close}, S::closed},

      {{S::beating, E::planned}, S::scheduled},
      {{S::beating, E::renewal_sent}, S::beating},
      {{S::beating, E::token_missing}, S::awaiting_token},
      {{S::beating, E::beat_sent}, S::beating},
      {{S::beating, E::close}, S::closed},

      {{S::awaiting_token, E::planned}, S::scheduled},
      {{S::awaiting_token, E::beat_sent}, S::beating},
      {{S::awaiting_token, E::close}, S::closed},
  };
  return rows;
}

TEST(EtcdBeatState, EveryPairOfStateAndEventIsAsInTheTable) {
  for (int s = 0; s < kBeatStates; ++s) {
    for (int e = 0; e < kBeatEvents; ++e) {
      const auto state = static_cast<BeatState>(s);
      const auto event = static_cast<BeatEvent>(e);
      const auto row = beat_table().find({state, event});
      const auto expected = row == beat_table().end() ? std::nullopt : std::optional(row->second);
      EXPECT_EQ(next_state(state, event), expected) << "state " << s << ", event " << e;
    }
  }
}

TEST(EtcdBeatState, EveryStateCanBeReachedAndLeft) {
  std::set<BeatState> reached{BeatState::idle};
  for (bool more = true; more;) {
    more = false;
    for (const auto& [pair, to] : beat_table()) {
      if (reached.contains(pair.first)) more |= reached.insert(to).second;
    }
  }
  EXPECT_EQ(reached.size(), static_cast<std::size_t>(kBeatStates));
  for (const BeatState state : reached) {
    bool left = state == BeatState::closed;
    for (const auto& [pair, to] : beat_table()) left |= pair.first == state && to != state;
    EXPECT_TRUE(left) << "state " << static_cast<int>(state);
  }
}

TEST(EtcdBeatState, AnswersAreAwaitedOnlyAfterAKeepaliveWasSent) {
  for (const auto& [pair, to] : beat_table()) {
    if (awaits_answers(pair.first) || !awaits_answers(to)) continue;
    EXPECT_TRUE(pair.second == BeatEvent::beat_sent || pair.second == BeatEvent::renewal_sent)
        << "state " << static_cast<int>(pair.first) << ", event " << static_cast<int>(pair.second);
  }
}

}  // namespace
}  // namespace baton::etcd
