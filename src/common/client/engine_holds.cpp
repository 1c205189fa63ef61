// The holds and own tickets of the Engine. engine.cpp has the attempts, withdrawals.cpp
// has the withdrawals, engine_session.cpp has the sessions.
#include "common/client/engine.h"

#include "common/base/mutant.h"
#include "common/recipe/queue_rule.h"

#include <algorithm>
#include <utility>

namespace baton::internal {

// ---- holds

void Engine::retire_hold(const std::shared_ptr<Hold>& hold, Answer<Done> answer) {
  context_.loop.assert_on_strand();
  BATON_ASSERT(!hold->is_held());
  if (!holds_.contains(hold->nonce())) {
    // The session has ended, or lose() came first: a withdrawal may be under way already.
    if (!answer) return;
    if (!withdrawals_.join(hold->nonce(), answer)) {
      answer(Error(Errc::lock_lost, "the lock was lost before it was released"));
    }
    return;
  }
  const auto held = context_.loop.now() - hold->since();
  const bool lost = hold->state() == LockState::lost;
  context_.host.metric(
      {lost ? MetricEvent::Kind::lost : MetricEvent::Kind::released, {}, hold->token(), held},
      &hold->name());
  if (lost) {
    context_.log(LogLevel::warning, "lock \"" + hold->name().text() + "\" on " +
                                        context_.backend.where() + " with token " +
                                        std::to_string(hold->token()) +
                                        " is lost: " + hold->lost_reason().message());
  }
  forget_hold(hold);
  context_.host.on_hold_closed(hold);
  if (lost && mutant(Mutant::lost_ticket_stays)) return;
  withdrawals_.withdraw(hold->name(), hold->nonce(), std::move(answer));
}

void Engine::forget_hold(const std::shared_ptr<Hold>& hold) {
  holds_.erase(hold->nonce());
  own_watches_.unwatch(hold->nonce());
  backstop_.remove_hold(hold->name(), hold->nonce());
}

void Engine::lose(const std::shared_ptr<Hold>& hold, Errc reason) {
  if (!holds_.contains(hold->nonce())) return;
  const bool first = hold->become_lost(reason);
  forget_hold(hold);
  if (first) {
    context_.host.metric(
        {MetricEvent::Kind::lost, {}, hold->token(), context_.loop.now() - hold->since()},
        &hold->name());
    context_.host.hold_lost(hold);
    if (reason != Errc::closed) {
      context_.log(LogLevel::warning, "lock \"" + hold->name().text() + "\" on " +
                                          context_.backend.where() + " with token " +
                                          std::to_string(hold->token()) +
                                          " is lost: " + make_error_code(reason).message());
    }
  } else {
    context_.host.on_hold_closed(hold);
  }
  // The ticket may still exist: remove it as soon as the store can be reached.
  if (context_.session != nullptr && !context_.closing && !mutant(Mutant::lost_ticket_stays)) {
    withdrawals_.withdraw(hold->name(), hold->nonce(), nullptr);
  }
}

void Engine::check_hold(const std::shared_ptr<Hold>& hold) {
  if (context_.session == nullptr || !holds_.contains(hold->nonce())) return;
  if (const Errc due = hold->due_loss(); due != Errc{}) {
    lose(hold, due);
    return;
  }
  context_.session->look(hold->name(), hold->nonce(), {},
                         [this, hold, epoch = context_.epoch](Result<Standing> standing) {
                           if (epoch != context_.epoch || !standing)
                             return;  // nothing is known: the lease decides
                           // Only the loss of its own ticket ends a hold. A ticket ahead has gone
                           // already; a server that lags behind may still show it.
                           if (judge(standing->view, hold->nonce()).verdict == Verdict::missing) {
                             lose(hold, Errc::evicted);
                             return;
                           }
                           if (!holds_.contains(hold->nonce())) return;
                           for (const Ticket& t : standing->view.tickets) {
                             if (t.ours == hold->nonce()) own_watches_.watch(hold->name(), t);
                           }
                         });
}

void Engine::look_of_hold(Nonce nonce) {
  const auto hold = holds_.find(nonce);
  if (hold == holds_.end()) return;
  const auto kept = hold->second;
  check_hold(kept);
}

void Engine::verify(const std::shared_ptr<Hold>& hold, Answer<bool> answer) {
  context_.loop.assert_on_strand();
  if (context_.session == nullptr || !holds_.contains(hold->nonce())) {
    answer(false);
    return;
  }
  context_.session->verify(hold->name(), hold->nonce(),
                           [this, hold, answer = std::move(answer)](Result<bool> ours) mutable {
                             if (ours && !*ours) lose(hold, Errc::evicted);
                             answer(std::move(ours));
                           });
}

// ---- events of own tickets

void Engine::own_ticket_event(Nonce nonce) {
  if (const auto hold = holds_.find(nonce); hold != holds_.end()) {
    const auto kept = hold->second;
    check_hold(kept);
    return;
  }
  if (const auto attempt = by_nonce_.find(nonce); attempt != by_nonce_.end()) {
    const auto kept = attempt->second;
    carry_out(kept, kept->machine.on_own_ticket());
  }
}

}  // namespace baton::internal
