#include "common/recipe/acquisition.h"

#include "common/base/check.h"
#include "common/recipe/queue_rule.h"

#include <algorithm>
#include <utility>

namespace baton::internal {

Actions Acquisition::finish(Actions actions) {
  BATON_ASSERT(!done() && (actions.grant != actions.fail.has_value()));
  state_ = State::done;
  return actions;
}

Actions Acquisition::join_under(Nonce nonce) {
  nonce_ = nonce;
  ticket_sent_ = true;  // from here on the ticket may exist, whatever the answer is
  look_again_ = false;
  state_ = State::joining;
  Actions actions;
  actions.join = true;
  return actions;
}

Actions Acquisition::begin(Nonce fresh) {
  if (!once_) return join_under(fresh);
  nonce_ = fresh;
  state_ = State::peeking;
  Actions actions;
  actions.peek = true;
  return actions;
}

Actions Acquisition::on_session(Nonce fresh) {
  if (state_ != State::no_session) return {};
  // Never adopt a ticket of an earlier session: the store is about to remove it (CURATOR-604).
  return begin(fresh);
}

Actions Acquisition::on_session_ended() {
  if (done()) return {};
  state_ = State::no_session;
  ticket_sent_ = false;  // the store removes it with the session
  return {};
}

Actions Acquisition::look_again() {
  Actions actions;
  switch (state_) {
    case State::waiting:
      state_ = State::looking;
      actions.look = true;
      break;
    case State::looking:
    case State::joining:
      // The answer under way may be older than this event.
      look_again_ = true;
      break;
    default:
      break;
  }
  return actions;
}

Actions Acquisition::on_session_resumed() {
  return state_ == State::pausing ? on_pause_over() : look_again();
}
Actions Acquisition::on_own_ticket() { return look_again(); }
Actions Acquisition::on_backstop() { return look_again(); }

Actions Acquisition::on_peeked(const Result<bool>& busy) {
  if (state_ != State::peeking) return {};
  if (!busy) {
    Actions actions;
    if (!transient(busy.error())) {
      actions.fail = busy.error();
      return finish(std::move(actions));
    }
    state_ = State::pausing;
    retry_ = State::peeking;
    actions.pause = true;
    return actions;
  }
  if (*busy) {
    Actions actions;
    actions.fail = Error(Errc::timeout, "the lock is not free");
    return finish(std::move(actions));
  }
  return join_under(nonce_);
}

Actions Acquisition::on_joined(const Result<Standing>& standing, Nonce fresh, bool lease_ok) {
  if (state_ != State::joining) return {};
  if (standing) return judge_standing(*standing, fresh, lease_ok);
  Actions actions;
  if (transient(standing.error())) {
    // The ticket may be in the queue or not. A second join under the same nonce finds it if it is.
    state_ = State::pausing;
    retry_ = State::joining;
    actions.pause = true;
    return actions;
  }
  actions.withdraw = nonce_;
  actions.fail = standing.error();
  return finish(std::move(actions));
}

Actions Acquisition::on_looked(const Result<Standing>& standing, Nonce fresh, bool lease_ok) {
  if (state_ != State::looking) return {};
  if (standing) return judge_standing(*standing, fresh, lease_ok);
  Actions actions;
  if (transient(standing.error())) {
    state_ = State::pausing;
    retry_ = State::looking;
    actions.pause = true;
    return actions;
  }
  actions.withdraw = nonce_;
  actions.fail = standing.error();
  return finish(std::move(actions));
}

Actions Acquisition::judge_standing(const Standing& standing, Nonce fresh, bool lease_ok) {
  auto judgement = judge(standing.view, nonce_);
  Actions actions;
  if (judgement.verdict == Verdict::missing) {
    // The ticket was evicted while it waited: join again at the end of the queue with a new ticket.
    // The old nonce is withdrawn anyway: if the answer was wrong, the old ticket must not stay.
    const Nonce old = nonce_;
    if (once_) {
      actions.withdraw = old;
      actions.fail = Error(Errc::timeout, "the entry was evicted right after it joined the queue");
      return finish(std::move(actions));
    }
    actions = join_under(fresh);
    actions.withdraw = old;
    return actions;
  }
  if (std::exchange(look_again_, false) || judgement.verdict == Verdict::incomplete) {
    state_ = State::looking;
    actions.look = true;
    return actions;
  }
  token_ = standing.token;
  sign_ = standing.sign;
  ahead_ = judgement.ahead;
  const auto mine = std::find_if(standing.view.tickets.begin(), standing.view.tickets.end(),
                                 [this](const Ticket& t) { return t.ours == nonce_; });
  if (mine != standing.view.tickets.end()) own_ = *mine;
  if (judgement.verdict == Verdict::holder) {
    if (!lease_ok) {
      // No ticket is ahead, but the session may have ended already: a grant would not be valid.
      state_ = State::pausing;
      retry_ = State::looking;
      actions.pause = true;
      return actions;
    }
    actions.grant = true;
    return finish(std::move(actions));
  }
  if (once_) {
    actions.withdraw = nonce_;
    actions.fail = Error(Errc::timeout, "the lock is not free");
    return finish(std::move(actions));
  }
  BATON_ASSERT(judgement.predecessor);
  state_ = State::waiting;
  actions.watch = std::move(judgement.predecessor);
  return actions;
}

Actions Acquisition::on_predecessor(const WatchEvent& event, bool lease_ok) {
  if (state_ != State::waiting) return look_again();
  if (event.kind == WatchEvent::gone && ahead_ == 1 && lease_ok) {
    Actions actions;
    actions.grant = true;
    return finish(std::move(actions));
  }
  // The predecessor may have been a waiter that gave up, so this is not yet a grant: look.
  Actions actions = look_again();
  actions.hint = event.hint;
  return actions;
}

Actions Acquisition::on_pause_over() {
  if (state_ != State::pausing) return {};
  state_ = retry_;
  Actions actions;
  actions.peek = retry_ == State::peeking;
  actions.join = retry_ == State::joining;
  actions.look = retry_ == State::looking;
  return actions;
}

Actions Acquisition::on_give_up(const Error& why) {
  if (done()) return {};
  Actions actions;
  if (ticket_sent_) actions.withdraw = nonce_;
  actions.fail = why;
  return finish(std::move(actions));
}

}  // namespace baton::internal
