// judge(): decides from a reading of the queue whether a ticket holds the lock, or which
// predecessor it must watch. Pure.
#pragma once

#include "common/seam/ticket.h"

#include <cstddef>
#include <optional>

namespace baton::internal {

enum class Verdict {
  holder,      // no ticket is ahead
  waiting,     // a ticket is ahead: watch the predecessor, and only it
  missing,     // the own ticket is not in the queue
  incomplete,  // tickets are ahead, but the reading contains none of them: look again
};

struct Judgement {
  Verdict verdict = Verdict::missing;
  std::optional<Ticket> predecessor;  // set when waiting
  std::size_t ahead = 0;              // how many tickets are ahead
};

Judgement judge(const QueueView& view, Nonce me);

}  // namespace baton::internal
