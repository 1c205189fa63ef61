// The states of the keepalives that Leases sends, and which timer runs in each. Every change of
// state is an event of the table in next_state(); tests/unit/etcd_beat_state_test.cpp checks it.
#pragma once

#include <optional>

namespace baton::etcd {

// A beat sends a keepalive for each lease; a renewal sends one for a single lease, between beats.
enum class BeatState {
  idle,            // no lease was granted yet
  scheduled,       // the beat timer starts the next beat
  renewing,        // the same, and the late timer limits how long a renewal is unanswered
  beating,         // the late timer limits how long a beat is unanswered
  awaiting_token,  // the token timer limits how long the next beat waits for a token
  closed,          // all leases are being revoked, and no other is granted
};

enum class BeatEvent {
  planned,  // the beat timer is set: all keepalives are answered, or the stream has ended
  renewal_sent,
  token_missing,  // a beat cannot open its stream yet
  beat_sent,
  close,
};

// A keepalive may be unanswered.
constexpr bool awaits_answers(BeatState state) noexcept {
  return state == BeatState::renewing || state == BeatState::beating;
}

// The state after an event; nullopt: the event cannot happen in this state.
constexpr std::optional<BeatState> next_state(BeatState state, BeatEvent event) noexcept {
  using S = BeatState;
  using E = BeatEvent;
  if (state == S::closed) return std::nullopt;
  switch (event) {
    case E::planned:
      return S::scheduled;
    case E::renewal_sent:
      if (state == S::scheduled) return S::renewing;
      return awaits_answers(state) ? std::optional(state) : std::nullopt;
    case E::token_missing:
      if (state == S::scheduled || awaits_answers(state)) return S::awaiting_token;
      return std::nullopt;
    case E::beat_sent:
      return state != S::idle ? std::optional(S::beating) : std::nullopt;
    case E::close:
      return S::closed;
  }
  return std::nullopt;
}

}  // namespace baton::etcd
