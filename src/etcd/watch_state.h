// The states of a watch of one key. Every change of state is an event of the table in next_state();
// tests/unit/etcd_watch_state_test.cpp checks it.
#pragma once

#include <optional>

namespace baton::etcd {

enum class WatchState {
  delayed,   // a timer starts it
  starting,  // the create request waits for a stream, or was sent
  checking,  // it started later than wanted; a look finds out whether the key was deleted before
  live,      // every event after the last known revision is delivered
  refused,   // on no stream; a timer ends it, or starts it again if it reports puts
  over,      // it has fired, or its last caller has left
};

// A stream that breaks is no event: a watch keeps its state until its create is sent on the next
// stream, and until then a look under way still counts.
enum class WatchStep {
  begin,
  begin_anew,          // a watch for puts starts again, under a new watch id
  create_sent,         // on a new stream
  accepted_at_known,   // the server has started it right after the last known revision
  accepted,            // ... at a later revision, and there is nothing to check
  accepted_unchecked,  // ... at a later revision, and a look is needed
  key_found,           // by the look
  refused_by_server,   // the server has refused or cancelled it
  finished,
};

// The state after an event; nullopt: the event cannot happen in this state.
constexpr std::optional<WatchState> next_state(WatchState state, WatchStep step) noexcept {
  using S = WatchState;
  using E = WatchStep;
  const bool on_stream = state == S::starting || state == S::checking || state == S::live;
  switch (step) {
    case E::begin:
      if (state == S::delayed || state == S::refused) return S::starting;
      return std::nullopt;
    case E::begin_anew:  // a watch for puts is never delayed and needs no look
      if (state == S::starting || state == S::live || state == S::refused) return S::starting;
      return std::nullopt;
    case E::create_sent:
      return on_stream ? std::optional(S::starting) : std::nullopt;
    case E::accepted_at_known:
      if (state == S::starting || state == S::live) return S::live;  // live: answered twice
      return std::nullopt;
    case E::accepted:
      if (state == S::starting || state == S::checking) return S::live;  // checking: answered twice
      return std::nullopt;
    case E::accepted_unchecked:
      if (state == S::starting || state == S::checking) return S::checking;
      return std::nullopt;
    case E::key_found:
      if (state == S::checking) return S::live;
      // The watch was refused since, or the server answered twice. The next start continues after
      // the revision of the look.
      if (state == S::starting || state == S::live || state == S::refused) return state;
      return std::nullopt;
    case E::refused_by_server:
      return on_stream ? std::optional(S::refused) : std::nullopt;
    case E::finished:
      return state != S::over ? std::optional(S::over) : std::nullopt;
  }
  return std::nullopt;
}

// Whether one member has delivered every event since the watch was first accepted.
enum class Continuity {
  never_accepted,
  unbroken,
  resumed,  // after the last known revision, on a stream that may go to another member
};

constexpr Continuity next_continuity(Continuity before, WatchStep step) noexcept {
  const bool at_known = step == WatchStep::accepted_at_known;
  if (!at_known && step != WatchStep::accepted && step != WatchStep::accepted_unchecked) {
    return before;
  }
  if (before == Continuity::never_accepted) return Continuity::unbroken;
  return at_known ? Continuity::resumed : before;
}

}  // namespace baton::etcd
