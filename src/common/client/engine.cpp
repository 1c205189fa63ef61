#include "common/client/engine.h"

#include <utility>

namespace baton::internal {

Engine::Engine(Backend& backend, EngineHost& host, LogFunction log, std::uint32_t seed,
               std::uint64_t token_base)
    : context_(backend, host, std::move(log), seed, token_base),
      own_watches_(context_,
                   [this](Nonce nonce) {
                     if (!holds_.look(nonce)) attempts_.own_ticket_event(nonce);
                   }),
      withdrawals_(context_, own_watches_),
      backstop_(
          context_, [this](const std::shared_ptr<Attempt>& waiter) { attempts_.look(waiter); },
          [this](Nonce nonce) { holds_.look(nonce); }),
      holds_(context_, own_watches_, withdrawals_, backstop_),
      attempts_(context_, own_watches_, withdrawals_, backstop_, holds_),
      keeper_(context_, own_watches_, withdrawals_, holds_, attempts_) {}

}  // namespace baton::internal
