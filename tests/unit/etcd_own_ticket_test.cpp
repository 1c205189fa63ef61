// Compares the states of a ticket with a table of every legal transition, and shows that the table
// leads to every state.
#include "etcd/own_ticket.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <utility>

namespace baton::etcd {
namespace {

using S = TicketState;
using E = TicketEvent;

constexpr int kTicketStates = static_cast<int>(S::gone) + 1;
constexpr int kTicketEvents = static_cast<int>(E::removed) + 1;

// A pair that is not in the table is not a legal transition.
const std::map<std::pair<S, E>, S>& ticket_table() {
  static const std::map<std::pair<S, E>, S> rows{
      {{S::queued, E::sent}, S::joining},
      {{S::queued, E::turn_rejected}, S::gone},
      {{S::queued, E::lease_failed}, S::gone},
      {{S::queued, E::withdraw}, S::gone},

      {{S::joining, E::joined}, S::present},
      {{S::joining, E::join_lost}, S::in_doubt},
      {{S::joining, E::join_refused}, S::gone},
      {{S::joining, E::key_taken}, S::queued},
      {{S::joining, E::withdraw}, S::cancelling},

      {{S::in_doubt, E::sent}, S::rejoining},
      {{S::in_doubt, E::turn_rejected}, S::in_doubt},
      {{S::in_doubt, E::withdraw}, S::removing_unknown},

      {{S::rejoining, E::joined}, S::present_late},
      {{S::rejoining, E::join_lost}, S::in_doubt},
      {{S::rejoining, E::join_refused}, S::in_doubt},
      {{S::rejoining, E::withdraw}, S::cancelling_again},

      {{S::present, E::withdraw}, S::removing},

      {{S::present_late, E::withdraw}, S::removing_late},

      {{S::cancelling, E::joined}, S::removing},
      {{S::cancelling, E::join_lost}, S::removing_unknown},
      {{S::cancelling, E::join_refused}, S::gone},
      {{S::cancelling, E::key_taken}, S::gone},
      {{S::cancelling, E::withdraw}, S::cancelling},

      {{S::cancelling_again, E::joined}, S::removing_late},
      {{S::cancelling_again, E::join_lost}, S::removing_unknown},
      {{S::cancelling_again, E::join_refused}, S::removing_unknown},
      {{S::cancelling_again, E::withdraw}, S::cancelling_again},

      {{S::removing, E::withdraw}, S::removing},
      {{S::removing, E::removed}, S::gone},

      {{S::removing_late, E::withdraw}, S::removing_late},
      {{S::removing_late, E::removed}, S::gone},

      {{S::removing_unknown, E::turn_rejected}, S::removing_unknown},
      {{S::removing_unknown, E::withdraw}, S::removing_unknown},
      {{S::removing_unknown, E::removed}, S::gone},

      {{S::gone, E::turn_rejected}, S::gone},
      {{S::gone, E::lease_failed}, S::gone},
      {{S::gone, E::removed}, S::gone},
  };
  return rows;
}

// The meaning of each state, written a second time, independently of the code.
struct Meaning {
  bool withdrawn;
  bool present;
  bool late;
};

const std::map<S, Meaning>& ticket_meanings() {
  static const std::map<S, Meaning> rows{
      {S::queued, {false, false, false}},         {S::joining, {false, false, false}},
      {S::in_doubt, {false, false, true}},        {S::rejoining, {false, false, true}},
      {S::present, {false, true, false}},         {S::present_late, {false, true, true}},
      {S::cancelling, {true, false, false}},      {S::cancelling_again, {true, false, true}},
      {S::removing, {true, true, false}},         {S::removing_late, {true, true, true}},
      {S::removing_unknown, {true, false, true}}, {S::gone, {true, false, false}},
  };
  return rows;
}

TEST(EtcdOwnTicket, EveryPairOfStateAndEventIsAsInTheTable) {
  for (int s = 0; s < kTicketStates; ++s) {
    for (int e = 0; e < kTicketEvents; ++e) {
      const auto row = ticket_table().find({static_cast<S>(s), static_cast<E>(e)});
      const auto expected = row == ticket_table().end() ? std::nullopt : std::optional(row->second);
      EXPECT_EQ(next_state(static_cast<S>(s), static_cast<E>(e)), expected)
          << "state " << s << ", event " << e;
    }
  }
}

TEST(EtcdOwnTicket, EveryStateCanBeReachedAndLeft) {
  std::set<S> reached{S::queued};
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

TEST(EtcdOwnTicket, EveryStateMeansWhatItsNameSays) {
  ASSERT_EQ(ticket_meanings().size(), static_cast<std::size_t>(kTicketStates));
  for (const auto& [state, meaning] : ticket_meanings()) {
    EXPECT_EQ(is_withdrawn(state), meaning.withdrawn) << "state " << static_cast<int>(state);
    EXPECT_EQ(is_present(state), meaning.present) << "state " << static_cast<int>(state);
    EXPECT_EQ(late_possible(state), meaning.late) << "state " << static_cast<int>(state);
  }
}

TEST(EtcdOwnTicket, NoEventTakesAWithdrawalBack) {
  for (const auto& [pair, to] : ticket_table()) {
    if (is_withdrawn(pair.first)) {
      EXPECT_TRUE(is_withdrawn(to)) << "state " << static_cast<int>(pair.first) << ", event "
                                    << static_cast<int>(pair.second);
    }
  }
}

// After an answer was lost, its transaction can take effect at any time until the lease is revoked.
TEST(EtcdOwnTicket, ALateTransactionStaysPossible) {
  for (const auto& [pair, to] : ticket_table()) {
    if (late_possible(pair.first)) {
      EXPECT_TRUE(late_possible(to) || pair.second == E::removed)
          << "state " << static_cast<int>(pair.first) << ", event "
          << static_cast<int>(pair.second);
    }
  }
}

TEST(EtcdOwnTicket, AWithdrawnTicketIsNeverSent) {
  for (int s = 0; s < kTicketStates; ++s) {
    const S state = static_cast<S>(s);
    EXPECT_EQ(may_send(state), state == S::queued || state == S::in_doubt) << "state " << s;
  }
}

}  // namespace
}  // namespace baton::etcd
