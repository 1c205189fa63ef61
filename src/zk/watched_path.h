// WatchedPath: a node that this session watches, from the first watcher until the watch is over.
// Its state says what the server knows of the watch. Every change of state is an event of the table
// in next_state(); tests/unit/zk_watched_path_test.cpp checks it.
#pragma once

#include "common/base/check.h"
#include "common/base/loop.h"
#include "common/seam/session.h"
#include "zk/namespace.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace baton::zk {

enum class WatchState {
  delayed,  // nothing was sent: all watchers can wait, or the watch is about to be requested again
  asked,    // the request waits or was sent
  armed,    // the server will report when the node changes or goes
  refused,  // the server does not set the watch now: the watchers look when the pause is over
  over,     // Watches has forgotten the path; only the watchers of its record may remain to be told
};

enum class WatchProgress {
  ask,           // the watch is requested
  answer_ok,     // the server has set the watch
  answer_lost,   // the connection broke before the answer, and the watch is still wanted
  answer_other,  // any other error, and the watch is still wanted
  answer_final,  // the node does not exist, or the request failed and no watcher is left
  changed,       // the node was changed, which used up the watch
  gone,          // the node was removed
  unwanted,      // no watcher is left
  pause_over,    // after a refusal
  lane_ended,    // the session that has the watch at the server has ended
};

// The state after an event; nullopt: the event cannot happen in this state.
constexpr std::optional<WatchState> next_state(WatchState state, WatchProgress event) noexcept {
  using S = WatchState;
  using E = WatchProgress;
  switch (event) {
    case E::ask:
      return state == S::delayed ? std::optional(S::asked) : std::nullopt;
    case E::answer_ok:
      return state == S::asked ? std::optional(S::armed) : std::nullopt;
    case E::answer_lost:
      return state == S::asked ? std::optional(S::delayed) : std::nullopt;
    case E::answer_other:
      return state == S::asked ? std::optional(S::refused) : std::nullopt;
    case E::answer_final:
      return state == S::asked ? std::optional(S::over) : std::nullopt;
    case E::changed:
      return state == S::armed ? std::optional(S::delayed) : std::nullopt;
    case E::gone:
      return state == S::armed ? std::optional(S::over) : std::nullopt;
    case E::unwanted:  // asked: the answer decides, because a request cannot be taken back
      if (state == S::asked) return S::asked;
      return state == S::over ? std::nullopt : std::optional(S::over);
    case E::pause_over:
      return state == S::refused ? std::optional(S::over) : std::nullopt;
    case E::lane_ended:  // delayed: the path has no lane
      if (state == S::delayed || state == S::over) return std::nullopt;
      return S::over;
  }
  return std::nullopt;
}

class WatchedPath {
 public:
  explicit WatchedPath(std::uint64_t number) noexcept : serial(number) {}

  WatchState state() const noexcept { return state_; }
  void on(WatchProgress event) noexcept {
    const auto next = next_state(state_, event);
    BATON_ASSERT(next);  // Watches drops answers and events that do not fit the state
    state_ = next.value_or(state_);
  }

  std::vector<WatchId> watchers;
  std::size_t lane = 0;           // of the last request
  bool going = false;             // our own node, which this session is about to remove
  TimerId pause = TimerId::none;  // in refused
  std::uint64_t connection = 0;   // on which it was armed
  const std::uint64_t serial;     // answers for an earlier record of this path are ignored

 private:
  WatchState state_ = WatchState::delayed;
};

}  // namespace baton::zk
