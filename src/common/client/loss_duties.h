// What the threads of a LossThread do, and which changes are legal. Every change passes
// LossDuties::change(); tests/unit/loss_thread_test.cpp checks the table.
#pragma once

#include "common/base/check.h"

#include <array>
#include <cstddef>

namespace baton::internal {

enum class LossDuty {
  none,        // not started yet, or ended
  watching,    // declares losses, or waits for the next deadline
  telling,     // inside on_lost or nudge, which never wait for a stop callback
  announcing,  // inside a stop callback of the program, which may block
};

enum class LossPhase {
  running,
  stopping,  // stop() was called; the client that on_lost and nudge use may be destroyed
};

// Whether a thread may change its duty in this phase.
constexpr bool may_change(LossPhase phase, LossDuty from, LossDuty to) noexcept {
  using D = LossDuty;
  switch (from) {
    case D::none:  // also while stopping: a loss after stop() is still announced
    case D::telling:
    case D::announcing:
      return to == D::watching;
    case D::watching:
      // After stop() has returned, no thread may use the client.
      if (to == D::telling) return phase == LossPhase::running;
      return to == D::none || to == D::announcing;
  }
  return false;
}

// How many threads have which duty. Used with the mutex of the LossThread.
class LossDuties {
 public:
  void change(LossPhase phase, LossDuty from, LossDuty to) noexcept {
    BATON_ASSERT(may_change(phase, from, to));
    BATON_ASSERT(from == LossDuty::none || of(from) > 0);
    if (from != LossDuty::none) --counts_[index(from)];
    if (to != LossDuty::none) ++counts_[index(to)];
  }
  int of(LossDuty duty) const noexcept { return counts_[index(duty)]; }
  // Threads that no stop callback of the program can block.
  int unblocked() const noexcept { return of(LossDuty::watching) + of(LossDuty::telling); }
  int threads() const noexcept { return unblocked() + of(LossDuty::announcing); }

 private:
  static constexpr std::size_t index(LossDuty duty) noexcept {
    return static_cast<std::size_t>(duty);
  }
  std::array<int, 4> counts_{};  // that of none stays 0
};

}  // namespace baton::internal
