// OwnWatches: watches the own tickets of waiters and holds, at most once for each ticket.
#pragma once

#include "common/client/engine_context.h"

#include <functional>
#include <unordered_map>

namespace baton::internal {

class OwnWatches {
 public:
  // on_event: called when a watched ticket may be gone. The watch is over then.
  OwnWatches(EngineContext& context, std::function<void(Nonce)> on_event);

  // Watches the ticket, unless it is watched already. soon: see WatchFor.
  void watch(const LockName& name, const Ticket& ticket, bool soon = false);
  void unwatch(Nonce nonce);
  // The session has ended, and its watches with it.
  void session_ended() { watches_.clear(); }
  bool empty() const noexcept { return watches_.empty(); }

 private:
  EngineContext& context_;
  const std::function<void(Nonce)> on_event_;
  std::unordered_map<Nonce, WatchId> watches_;
};

}  // namespace baton::internal
