// Compares the states of a lease with a table of every legal transition, and shows that the table
// leads to every state.
#include "etcd/lease_state.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

namespace baton::etcd {
namespace {

constexpr int kLeaseStates = static_cast<int>(LeaseState::gone) + 1;
constexpr int kLeaseEvents = static_cast<int>(LeaseEvent::ended) + 1;

// A pair that is not in the table is not a legal transition.
const std::map<std::pair<LeaseState, LeaseEvent>, LeaseState>& lease_table() {
  using S = LeaseState;
  using E = LeaseEvent;
  static const std::map<std::pair<S, E>, S> rows{
      {{S::active, E::aged}, S::stale},         {{S::active, E::renewed}, S::active},
      {{S::active, E::retired}, S::draining},   {{S::active, E::emptied}, S::active},

      {{S::stale, E::renewed}, S::active},      {{S::stale, E::retired}, S::draining},
      {{S::stale, E::ended}, S::gone},

      {{S::draining, E::renewed}, S::draining}, {{S::draining, E::emptied}, S::unneeded},

      {{S::unneeded, E::renewed}, S::unneeded}, {{S::unneeded, E::revocation_sent}, S::revoking},
      {{S::unneeded, E::ended}, S::gone},

      {{S::revoking, E::renewed}, S::revoking}, {{S::revoking, E::revocation_failed}, S::unneeded},
      {{S::revoking, E::revoked}, S::gone},     {{S::revoking, E::ended}, S::gone},
  };
  return rows;
}

TEST(EtcdLeaseState, EveryPairOfStateAndEventIsAsInTheTable) {
  for (int s = 0; s < kLeaseStates; ++s) {
    for (int e = 0; e < kLeaseEvents; ++e) {
      const auto state = static_cast<LeaseState>(s);
      const auto event = static_cast<LeaseEvent>(e);
      const auto row = lease_table().find({state, event});
      const auto expected = row == lease_table().end() ? std::nullopt : std::optional(row->second);
      EXPECT_EQ(next_state(state, event), expected) << "state " << s << ", event " << e;
    }
  }
}

TEST(EtcdLeaseState, EveryStateCanBeReachedAndLeft) {
  std::set<LeaseState> reached{LeaseState::active};
  for (bool more = true; more;) {
    more = false;
    for (const auto& [pair, to] : lease_table()) {
      if (reached.contains(pair.first)) more |= reached.insert(to).second;
    }
  }
  EXPECT_EQ(reached.size(), static_cast<std::size_t>(kLeaseStates));
  for (const LeaseState state : reached) {
    bool left = state == LeaseState::gone;
    for (const auto& [pair, to] : lease_table()) left |= pair.first == state && to != state;
    EXPECT_TRUE(left) << "state " << static_cast<int>(state);
  }
}

TEST(EtcdLeaseState, NoEventTakesARetirementBack) {
  for (const auto& [pair, to] : lease_table()) {
    if (is_for_new_keys(pair.first)) continue;
    EXPECT_FALSE(is_for_new_keys(to))
        << "state " << static_cast<int>(pair.first) << ", event " << static_cast<int>(pair.second);
  }
}

TEST(EtcdLeaseState, LeaseThatTheSessionNeedsDoesNotJustEnd) {
  for (int s = 0; s < kLeaseStates; ++s) {
    const auto state = static_cast<LeaseState>(s);
    const bool needed = state == LeaseState::active || state == LeaseState::draining;
    EXPECT_EQ(ends_session(state), needed) << "state " << s;
    if (needed) {
      EXPECT_FALSE(next_state(state, LeaseEvent::ended)) << "state " << s;
    }
    EXPECT_EQ(is_kept(state), needed || state == LeaseState::stale) << "state " << s;
  }
}

}  // namespace
}  // namespace baton::etcd
