#include "common/client/own_watches.h"

#include "common/base/check.h"

#include <utility>

namespace baton::internal {

OwnWatches::OwnWatches(EngineContext& context, std::function<void(Nonce)> on_event)
    : context_(context), on_event_(std::move(on_event)) {}

void OwnWatches::watch(const LockName& name, const Ticket& ticket, bool soon) {
  BATON_ASSERT(ticket.ours);
  const Nonce nonce = *ticket.ours;
  if (watches_.contains(nonce)) return;
  watches_[nonce] = context_.session->watch(name, ticket, {std::nullopt, soon},
                                            [this, nonce, epoch = context_.epoch](WatchEvent) {
                                              if (epoch != context_.epoch) return;
                                              watches_.erase(nonce);
                                              on_event_(nonce);
                                            });
}

void OwnWatches::unwatch(Nonce nonce) {
  const auto watch = watches_.find(nonce);
  if (watch == watches_.end()) return;
  if (context_.session != nullptr) context_.session->unwatch(watch->second);
  watches_.erase(watch);
}

}  // namespace baton::internal
