// The holds, own tickets and the backstop of the Engine. engine.cpp has the attempts, withdrawals.cpp
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
  const auto group = groups_.find(hold->name());
  if (group == groups_.end()) return;
  std::erase(group->second.holds, hold->nonce());
  drop_empty_group(hold->name());
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

// ---- own tickets

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

// ---- the backstop: a watch may miss events, so the first waiter of this client in each queue, and
// ---- all its holds, look from time to time

void Engine::set_waiting(const std::shared_ptr<Attempt>& attempt, std::uint64_t rank) {
  clear_waiting(attempt);
  attempt->rank = rank;
  Group& group = groups_[attempt->name];
  group.waiting.emplace(std::pair(rank, attempt->id), attempt);
  arm_backstop(attempt->name, group);
}

void Engine::clear_waiting(const std::shared_ptr<Attempt>& attempt) {
  if (attempt->rank == 0) return;
  const auto group = groups_.find(attempt->name);
  if (group != groups_.end()) {
    group->second.waiting.erase(std::pair(attempt->rank, attempt->id));
    drop_empty_group(attempt->name);
  }
  attempt->rank = 0;
}

void Engine::drop_empty_group(const LockName& name) {
  const auto group = groups_.find(name);
  if (group == groups_.end() || !group->second.empty()) return;
  context_.loop.cancel(group->second.backstop);
  groups_.erase(group);
}

void Engine::arm_backstop(const LockName& name, Group& group) {
  if (context_.session == nullptr || group.empty() || group.backstop != TimerId::none) return;
  const auto period = std::chrono::duration_cast<Nanos>(context_.session->backstop());
  std::uniform_int_distribution<std::int64_t> jitter(period.count() / 4 * 3, period.count());
  group.backstop = context_.loop.at(context_.loop.now() + Nanos(jitter(context_.random)),
                                    [this, name] { run_backstop(name); });
}

void Engine::run_backstop(const LockName& name) {
  auto group = groups_.find(name);
  if (group == groups_.end()) return;
  group->second.backstop = TimerId::none;
  if (context_.session == nullptr || mutant(Mutant::no_backstop)) return;
  // The first waiter is enough: all other waiters of this client are behind it.
  if (!group->second.waiting.empty()) {
    const auto first = group->second.waiting.begin()->second;
    own_watches_.watch(name, first->machine.own());
    carry_out(first, first->machine.on_backstop());
  }
  group = groups_.find(name);
  if (group == groups_.end()) return;
  const auto holds = group->second.holds;
  for (const Nonce nonce : holds) {
    const auto hold = holds_.find(nonce);
    if (hold == holds_.end()) continue;
    const auto kept = hold->second;
    check_hold(kept);
  }
  group = groups_.find(name);
  if (group != groups_.end()) arm_backstop(name, group->second);
}

}  // namespace baton::internal
