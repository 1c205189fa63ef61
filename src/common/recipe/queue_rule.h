// The recipe in one question: given the queue and me, do I hold it, or whom do I watch? Pure.
#pragma once

#include "common/seam/ticket.h"

#include <cstddef>
#include <optional>

namespace baton::internal {

enum class Verdict {
  holder,      // nobody is ahead
  waiting,     // somebody is ahead: watch the predecessor, and only it
  missing,     // my ticket is not in the queue
  incomplete,  // my ticket is the first of a reading that was cut off before it: look again
};

struct Judgement {
  Verdict verdict = Verdict::missing;
  std::optional<Ticket> predecessor;  // set when waiting
  std::size_t ahead = 0;              // how many stand before me
};

Judgement judge(const QueueView& view, Nonce me);

}  // namespace baton::internal
