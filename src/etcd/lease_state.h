// The states of one lease of the session. Every change of state is an event of the table in
// next_state(); tests/unit/etcd_lease_state_test.cpp checks it.
#pragma once

#include <optional>

namespace baton::etcd {

enum class LeaseState {
  active,    // new keys may be added
  stale,     // without keys; too little of its TTL is left for a first key until it is renewed
  draining,  // it gets no more keys; it is revoked when its last key is gone
  unneeded,  // draining, and without keys: waits to be revoked
  revoking,  // the revocation is unanswered
  gone,
};

enum class LeaseEvent {
  aged,     // less than half of the TTL is left, and it has no keys
  renewed,  // a keepalive was answered
  retired,
  emptied,  // its last key is gone, or it was retired without keys
  revocation_sent,
  revocation_failed,  // the next beat retries
  revoked,
  ended,  // the server has no such lease
};

// The session needs the lease: its end is the end of the session.
constexpr bool ends_session(LeaseState state) noexcept {
  return state == LeaseState::active || state == LeaseState::draining;
}

// It is kept alive, and its deadline counts.
constexpr bool is_kept(LeaseState state) noexcept {
  return ends_session(state) || state == LeaseState::stale;
}

// New keys may be added, at once or after it was renewed.
constexpr bool is_for_new_keys(LeaseState state) noexcept {
  return state == LeaseState::active || state == LeaseState::stale;
}

// The state after an event; nullopt: the event cannot happen in this state.
constexpr std::optional<LeaseState> next_state(LeaseState state, LeaseEvent event) noexcept {
  using S = LeaseState;
  using E = LeaseEvent;
  switch (event) {
    case E::aged:
      return state == S::active ? std::optional(S::stale) : std::nullopt;
    case E::renewed:  // unneeded, revoking: the keepalive was sent before
      if (state == S::stale) return S::active;
      return state != S::gone ? std::optional(state) : std::nullopt;
    case E::retired:
      return is_for_new_keys(state) ? std::optional(S::draining) : std::nullopt;
    case E::emptied:
      if (state == S::draining) return S::unneeded;
      return state == S::active ? std::optional(S::active) : std::nullopt;
    case E::revocation_sent:
      return state == S::unneeded ? std::optional(S::revoking) : std::nullopt;
    case E::revocation_failed:
      return state == S::revoking ? std::optional(S::unneeded) : std::nullopt;
    case E::revoked:
      return state == S::revoking ? std::optional(S::gone) : std::nullopt;
    case E::ended:
      return ends_session(state) || state == S::gone ? std::nullopt : std::optional(S::gone);
  }
  return std::nullopt;
}

}  // namespace baton::etcd
