// Compares the states of a ticket with a table of every legal transition, and shows that the table
// leads to every state.
#include "zk/own_ticket.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

namespace baton::zk {
namespace {

using S = TicketState;
using E = TicketEvent;

constexpr int kTicketStates = static_cast<int>(S::gone) + 1;
constexpr int kTicketEvents = static_cast<int>(E::removed) + 1;

// A pair that is not in the table is not a legal transition.
const std::map<std::pair<S, E>, S>& ticket_table() {
  static const std::map<std::pair<S, E>, S> rows{
      {{S::creating, E::withdraw}, S::cancelling_create},
      {{S::creating, E::withdraw_unsent}, S::gone},
      {{S::creating, E::create_ok}, S::there},
      {{S::creating, E::create_lost}, S::in_doubt},
      {{S::creating, E::create_no_parent}, S::making_parents},
      {{S::creating, E::create_refused}, S::gone},

      {{S::making_parents, E::withdraw}, S::cancelling_parents},
      {{S::making_parents, E::parents_made}, S::creating},
      {{S::making_parents, E::parents_failed}, S::gone},

      {{S::cancelling_create, E::withdraw}, S::cancelling_create},
      {{S::cancelling_create, E::create_ok}, S::removing},
      {{S::cancelling_create, E::create_lost}, S::searching},
      {{S::cancelling_create, E::create_no_parent}, S::gone},
      {{S::cancelling_create, E::create_refused}, S::gone},

      {{S::cancelling_parents, E::withdraw}, S::cancelling_parents},
      {{S::cancelling_parents, E::parents_made}, S::gone},
      {{S::cancelling_parents, E::parents_failed}, S::gone},

      {{S::in_doubt, E::withdraw}, S::searching},
      {{S::in_doubt, E::rejoin_absent}, S::creating},
      {{S::in_doubt, E::rejoin_adopted}, S::there},

      {{S::searching, E::withdraw}, S::searching},
      {{S::searching, E::rejoin_absent}, S::searching},
      {{S::searching, E::rejoin_adopted}, S::removing},
      {{S::searching, E::withdraw_absent}, S::gone},
      {{S::searching, E::removed}, S::gone},

      {{S::there, E::withdraw}, S::removing},

      {{S::removing, E::withdraw}, S::removing},
      {{S::removing, E::withdraw_absent}, S::gone},
      {{S::removing, E::removed}, S::gone},

      {{S::gone, E::rejoin_absent}, S::gone},
      {{S::gone, E::rejoin_adopted}, S::gone},
      {{S::gone, E::withdraw_absent}, S::gone},
      {{S::gone, E::removed}, S::gone},
  };
  return rows;
}

bool was_withdrawn(S state) {
  return state != S::creating && state != S::making_parents && state != S::in_doubt &&
         state != S::there;
}

TEST(ZkOwnTicket, EveryPairOfStateAndEventIsAsInTheTable) {
  for (int s = 0; s < kTicketStates; ++s) {
    for (int e = 0; e < kTicketEvents; ++e) {
      const auto row = ticket_table().find({static_cast<S>(s), static_cast<E>(e)});
      const auto expected = row == ticket_table().end() ? std::nullopt : std::optional(row->second);
      EXPECT_EQ(next_state(static_cast<S>(s), static_cast<E>(e)), expected)
          << "state " << s << ", event " << e;
    }
  }
}

TEST(ZkOwnTicket, EveryStateCanBeReachedAndLeft) {
  std::set<S> reached{S::creating};
  for (bool more = true; more;) {
    more = false;
    for (const auto& [pair, to] : ticket_table()) {
      if (reached.contains(pair.first)) more |= reached.insert(to).second;
    }
  }
  EXPECT_EQ(reached.size(), static_cast<std::size_t>(kTicketStates));
  for (const S state : reached) {
    bool left = state == S::gone;
    for (const auto& [pair, to] : ticket_table()) left |= pair.first == state && to != state;
    EXPECT_TRUE(left) << "state " << static_cast<int>(state);
  }
}

TEST(ZkOwnTicket, NoEventTakesAWithdrawalBack) {
  for (const auto& [pair, to] : ticket_table()) {
    if (was_withdrawn(pair.first)) {
      EXPECT_TRUE(was_withdrawn(to)) << "state " << static_cast<int>(pair.first) << ", event "
                                     << static_cast<int>(pair.second);
    }
  }
}

TEST(ZkOwnTicket, OnlyAKnownNameIsPresent) {
  for (int s = 0; s < kTicketStates; ++s) {
    const S state = static_cast<S>(s);
    EXPECT_EQ(is_present(state), state == S::there || state == S::removing) << "state " << s;
  }
}

}  // namespace
}  // namespace baton::zk
