#include "common/client/holds.h"

#include "common/base/check.h"
#include "common/recipe/queue_rule.h"

#include <string>
#include <utility>

namespace baton::internal {

Holds::Holds(EngineContext& context, OwnWatches& own_watches, Withdrawals& withdrawals,
             Backstop& backstop)
    : context_(context),
      own_watches_(own_watches),
      withdrawals_(withdrawals),
      backstop_(backstop) {}

void Holds::add(const std::shared_ptr<Hold>& hold, const Ticket& own) {
  holds_.emplace(hold->nonce(), hold);
  backstop_.add_hold(hold->name(), hold->nonce());
  own_watches_.watch(hold->name(), own, true);
}

void Holds::retire(const std::shared_ptr<Hold>& hold, Answer<Done> answer) {
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
  const bool lost = hold->state() == LockState::lost;
  report(*hold, lost);
  forget(hold);
  context_.host.on_hold_closed(hold);
  // While the client closes, the end of the session removes all tickets.
  if (!context_.closing) {
    withdrawals_.withdraw(hold->name(), hold->nonce(), std::move(answer));
  }
}

void Holds::report(const Hold& hold, bool lost) {
  context_.host.metric({lost ? MetricEvent::Kind::lost : MetricEvent::Kind::released,
                        {},
                        hold.token(),
                        context_.loop.now() - hold.since()},
                       &hold.name());
  if (!lost || hold.lost_reason() == Errc::closed) return;
  context_.log(LogLevel::warning, "lock \"" + hold.name().text() + "\" on " +
                                      context_.backend.where() + " with token " +
                                      std::to_string(hold.token()) +
                                      " is lost: " + hold.lost_reason().message());
}

void Holds::forget(const std::shared_ptr<Hold>& hold) {
  holds_.erase(hold->nonce());
  own_watches_.unwatch(hold->nonce());
  backstop_.remove_hold(hold->name(), hold->nonce());
}

void Holds::lose(const std::shared_ptr<Hold>& hold, Errc reason) {
  if (!holds_.contains(hold->nonce())) return;
  // False: the loss thread or the owner was first. Its own retire() comes later and finds nothing.
  if (hold->become_lost(reason)) context_.host.hold_lost(hold);
  // The ticket may still exist: remove it as soon as the store can be reached.
  retire(hold, nullptr);
}

void Holds::check(const std::shared_ptr<Hold>& hold) {
  if (context_.session == nullptr || !holds_.contains(hold->nonce())) return;
  if (const Errc due = hold->due_loss(); due != Errc{}) {
    lose(hold, due);
    return;
  }
  context_.session->look(hold->name(), hold->nonce(), {},
                         [this, hold, epoch = context_.epoch](const Result<Standing>& standing) {
                           // Without an answer nothing is known: the lease decides.
                           if (epoch == context_.epoch && standing) looked(hold, *standing);
                         });
}

void Holds::looked(const std::shared_ptr<Hold>& hold, const Standing& standing) {
  // Only the loss of its own ticket ends a hold. A ticket ahead has gone already; a server that
  // lags behind may still show it.
  if (judge(standing.view, hold->nonce()).verdict == Verdict::missing) {
    lose(hold, Errc::evicted);
    return;
  }
  if (!holds_.contains(hold->nonce())) return;
  for (const Ticket& t : standing.view.tickets) {
    if (t.ours == hold->nonce()) own_watches_.watch(hold->name(), t);
  }
}

bool Holds::look(Nonce nonce) {
  const auto hold = holds_.find(nonce);
  if (hold == holds_.end()) return false;
  const auto kept = hold->second;
  check(kept);
  return true;
}

void Holds::verify(const std::shared_ptr<Hold>& hold, Answer<bool> answer) {
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

void Holds::lose_all(Errc reason) {
  const auto holds = holds_;
  for (const auto& [nonce, hold] : holds) lose(hold, reason);
}

void Holds::check_all() {
  const auto holds = holds_;
  for (const auto& [nonce, hold] : holds) check(hold);
}

void Holds::abandon() noexcept {
  for (const auto& [nonce, hold] : std::exchange(holds_, {})) {
    if (hold->become_lost(Errc::closed)) context_.host.hold_lost(hold);
  }
}

}  // namespace baton::internal
