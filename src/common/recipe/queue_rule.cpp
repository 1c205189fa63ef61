#include "common/recipe/queue_rule.h"

#include <algorithm>

namespace baton::internal {

Judgement judge(const QueueView& view, Nonce me) {
  const auto mine = std::find_if(view.tickets.begin(), view.tickets.end(),
                                 [me](const Ticket& t) { return t.ours == me; });
  if (mine == view.tickets.end()) return {Verdict::missing, std::nullopt, 0};
  // Do not rely on the order of the list: only the rank decides.
  const Ticket* predecessor = nullptr;
  std::size_t ahead = view.omitted_ahead;
  for (const Ticket& t : view.tickets) {
    if (t.rank >= mine->rank) continue;
    ++ahead;
    if (predecessor == nullptr || t.rank > predecessor->rank) predecessor = &t;
  }
  if (ahead == 0) return {Verdict::holder, std::nullopt, 0};
  if (predecessor == nullptr) return {Verdict::incomplete, std::nullopt, ahead};
  return {Verdict::waiting, *predecessor, ahead};
}

}  // namespace baton::internal
