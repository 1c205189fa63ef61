// Every transition of the acquisition machine, as data. A row maps a situation and an event to a
// situation and actions. acquisition_transitions_test.cpp compares the machine with this table.
#pragma once

#include <string>
#include <vector>

namespace baton::internal::transitions {

// The events. An answer of the store is several events if the machine treats its results
// differently.
enum class E {
  // clang-format off
  session, ended, resumed,
  peeked_free, peeked_busy, peeked_outage, peeked_refusal,
  joined_first, joined_first_no_lease, joined_behind_one, joined_behind_many, joined_cut_off,
  joined_missing, joined_outage, joined_refusal,
  looked_first, looked_first_no_lease, looked_behind_one, looked_behind_many, looked_cut_off,
  looked_missing, looked_outage, looked_refusal,
  gone, gone_no_lease, stirred,  // of the watch on the predecessor; stirred: look again
  own_ticket, backstop, pause_over, give_up,
  count,
  // clang-format on
};
constexpr int kEvents = static_cast<int>(E::count);

// The situations: the state of the machine and what it remembers. "again": an event came while an
// answer was under way, so the machine must look again after that answer.
enum class S {
  // clang-format off
  no_session, peeking, pausing_to_peek,
  joining, joining_again, pausing_to_join, pausing_to_join_again,
  looking, looking_again, pausing_to_look, pausing_to_look_again,
  waiting_behind_one, waiting_behind_many,
  done,
  // clang-format on
};

enum class Kind { patient, once, both };  // once: a single attempt that does not wait

using Events = std::vector<E>;

inline Events operator+(Events a, const Events& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline const Events kPeeked{E::peeked_free, E::peeked_busy, E::peeked_outage, E::peeked_refusal};
inline const Events kJoined{E::joined_first,       E::joined_first_no_lease, E::joined_behind_one,
                            E::joined_behind_many, E::joined_cut_off,        E::joined_missing,
                            E::joined_outage,      E::joined_refusal};
inline const Events kLooked{E::looked_first,       E::looked_first_no_lease, E::looked_behind_one,
                            E::looked_behind_many, E::looked_cut_off,        E::looked_missing,
                            E::looked_outage,      E::looked_refusal};
inline const Events kPredecessor{E::gone, E::gone_no_lease, E::stirred};
inline const Events kHints = kPredecessor + Events{E::own_ticket, E::backstop};

struct Row {
  Kind kind;
  S in;
  Events events;
  S out;
  std::string does;  // the actions in order; "join" keeps the nonce, "join-new" takes a new one
};

inline const std::vector<Row>& table() {
  using enum E;
  using enum Kind;
  // clang-format off
  static const std::vector<Row> rows{
      {patient, S::no_session, {session}, S::joining, "join-new"},
      {once, S::no_session, {session}, S::peeking, "peek"},
      {both, S::no_session, {give_up}, S::done, "fail:given_up"},
      {both, S::no_session, kPeeked + kJoined + kLooked + kHints
       + Events{ended, resumed, pause_over},
       S::no_session, ""},

      {once, S::peeking, {peeked_free}, S::joining, "join"},
      {once, S::peeking, {peeked_busy}, S::done, "fail:timeout"},
      {once, S::peeking, {peeked_outage}, S::pausing_to_peek, "pause"},
      {once, S::peeking, {peeked_refusal}, S::done, "fail:refused"},
      {once, S::peeking, {ended}, S::no_session, ""},
      {once, S::peeking, {give_up}, S::done, "fail:given_up"},
      {once, S::peeking, kJoined + kLooked + kHints + Events{session, resumed, pause_over},
       S::peeking, ""},

      {once, S::pausing_to_peek, {pause_over, resumed}, S::peeking, "peek"},
      {once, S::pausing_to_peek, {ended}, S::no_session, ""},
      {once, S::pausing_to_peek, {give_up}, S::done, "fail:given_up"},
      {once, S::pausing_to_peek, kPeeked + kJoined + kLooked + kHints + Events{session},
       S::pausing_to_peek, ""},

      {both, S::joining, {joined_first}, S::done, "grant"},
      {both, S::joining, {joined_first_no_lease}, S::pausing_to_look, "pause"},
      {patient, S::joining, {joined_behind_one}, S::waiting_behind_one, "watch"},
      {patient, S::joining, {joined_behind_many}, S::waiting_behind_many, "watch"},
      {once, S::joining, {joined_behind_one, joined_behind_many}, S::done, "withdraw fail:timeout"},
      {both, S::joining, {joined_cut_off}, S::looking, "look"},
      {patient, S::joining, {joined_missing}, S::joining, "withdraw join-new"},
      {once, S::joining, {joined_missing}, S::done, "withdraw fail:timeout"},
      {both, S::joining, {joined_outage}, S::pausing_to_join, "pause"},
      {both, S::joining, {joined_refusal}, S::done, "withdraw fail:refused"},
      {both, S::joining, kHints + Events{resumed}, S::joining_again, ""},
      {both, S::joining, {ended}, S::no_session, ""},
      {both, S::joining, {give_up}, S::done, "withdraw fail:given_up"},
      {both, S::joining, kPeeked + kLooked + Events{session, pause_over}, S::joining, ""},

      {both, S::joining_again,
       {joined_first, joined_first_no_lease, joined_behind_one, joined_behind_many, joined_cut_off},
       S::looking, "look"},
      {patient, S::joining_again, {joined_missing}, S::joining, "withdraw join-new"},
      {once, S::joining_again, {joined_missing}, S::done, "withdraw fail:timeout"},
      {both, S::joining_again, {joined_outage}, S::pausing_to_join_again, "pause"},
      {both, S::joining_again, {joined_refusal}, S::done, "withdraw fail:refused"},
      {both, S::joining_again, {ended}, S::no_session, ""},
      {both, S::joining_again, {give_up}, S::done, "withdraw fail:given_up"},
      {both, S::joining_again, kPeeked + kLooked + kHints + Events{session, resumed, pause_over},
       S::joining_again, ""},

      {both, S::looking, {looked_first}, S::done, "grant"},
      {both, S::looking, {looked_first_no_lease}, S::pausing_to_look, "pause"},
      {patient, S::looking, {looked_behind_one}, S::waiting_behind_one, "watch"},
      {patient, S::looking, {looked_behind_many}, S::waiting_behind_many, "watch"},
      {once, S::looking, {looked_behind_one, looked_behind_many}, S::done, "withdraw fail:timeout"},
      {both, S::looking, {looked_cut_off}, S::looking, "look"},
      {patient, S::looking, {looked_missing}, S::joining, "withdraw join-new"},
      {once, S::looking, {looked_missing}, S::done, "withdraw fail:timeout"},
      {both, S::looking, {looked_outage}, S::pausing_to_look, "pause"},
      {both, S::looking, {looked_refusal}, S::done, "withdraw fail:refused"},
      {both, S::looking, kHints + Events{resumed}, S::looking_again, ""},
      {both, S::looking, {ended}, S::no_session, ""},
      {both, S::looking, {give_up}, S::done, "withdraw fail:given_up"},
      {both, S::looking, kPeeked + kJoined + Events{session, pause_over}, S::looking, ""},

      {both, S::looking_again,
       {looked_first, looked_first_no_lease, looked_behind_one, looked_behind_many, looked_cut_off},
       S::looking, "look"},
      {patient, S::looking_again, {looked_missing}, S::joining, "withdraw join-new"},
      {once, S::looking_again, {looked_missing}, S::done, "withdraw fail:timeout"},
      {both, S::looking_again, {looked_outage}, S::pausing_to_look_again, "pause"},
      {both, S::looking_again, {looked_refusal}, S::done, "withdraw fail:refused"},
      {both, S::looking_again, {ended}, S::no_session, ""},
      {both, S::looking_again, {give_up}, S::done, "withdraw fail:given_up"},
      {both, S::looking_again, kPeeked + kJoined + kHints + Events{session, resumed, pause_over},
       S::looking_again, ""},

      // "gone" grants the lock only to a waiter with one ticket ahead, and only with a lease.
      {patient, S::waiting_behind_one, {gone}, S::done, "grant"},
      {patient, S::waiting_behind_one, {gone_no_lease, stirred, own_ticket, backstop, resumed},
       S::looking, "look"},
      {patient, S::waiting_behind_one, {ended}, S::no_session, ""},
      {patient, S::waiting_behind_one, {give_up}, S::done, "withdraw fail:given_up"},
      {patient, S::waiting_behind_one, kPeeked + kJoined + kLooked + Events{session, pause_over},
       S::waiting_behind_one, ""},
      {patient, S::waiting_behind_many, kHints + Events{resumed}, S::looking, "look"},
      {patient, S::waiting_behind_many, {ended}, S::no_session, ""},
      {patient, S::waiting_behind_many, {give_up}, S::done, "withdraw fail:given_up"},
      {patient, S::waiting_behind_many, kPeeked + kJoined + kLooked + Events{session, pause_over},
       S::waiting_behind_many, ""},

      {both, S::pausing_to_join, {pause_over, resumed}, S::joining, "join"},
      {both, S::pausing_to_join, {ended}, S::no_session, ""},
      {both, S::pausing_to_join, {give_up}, S::done, "withdraw fail:given_up"},
      {both, S::pausing_to_join, kPeeked + kJoined + kLooked + kHints + Events{session},
       S::pausing_to_join, ""},
      {both, S::pausing_to_join_again, {pause_over, resumed}, S::joining_again, "join"},
      {both, S::pausing_to_join_again, {ended}, S::no_session, ""},
      {both, S::pausing_to_join_again, {give_up}, S::done, "withdraw fail:given_up"},
      {both, S::pausing_to_join_again, kPeeked + kJoined + kLooked + kHints + Events{session},
       S::pausing_to_join_again, ""},

      {both, S::pausing_to_look, {pause_over, resumed}, S::looking, "look"},
      {both, S::pausing_to_look, {ended}, S::no_session, ""},
      {both, S::pausing_to_look, {give_up}, S::done, "withdraw fail:given_up"},
      {both, S::pausing_to_look, kPeeked + kJoined + kLooked + kHints + Events{session},
       S::pausing_to_look, ""},
      {both, S::pausing_to_look_again, {pause_over, resumed}, S::looking_again, "look"},
      {both, S::pausing_to_look_again, {ended}, S::no_session, ""},
      {both, S::pausing_to_look_again, {give_up}, S::done, "withdraw fail:given_up"},
      {both, S::pausing_to_look_again, kPeeked + kJoined + kLooked + kHints + Events{session},
       S::pausing_to_look_again, ""},

      {both, S::done, kPeeked + kJoined + kLooked + kHints
       + Events{session, ended, resumed, pause_over, give_up},
       S::done, ""},
  };
  // clang-format on
  return rows;
}

}  // namespace baton::internal::transitions
