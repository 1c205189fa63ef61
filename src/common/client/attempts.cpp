#include "common/client/attempts.h"

#include "common/base/check.h"
#include "common/seam/token_base.h"

#include <chrono>
#include <string>
#include <utility>

namespace baton::internal {

namespace {
using std::chrono::milliseconds;

std::string seconds_text(Nanos d) {
  const auto tenths = std::chrono::duration_cast<milliseconds>(d).count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}
}  // namespace

Attempts::Attempts(EngineContext& context, OwnWatches& own_watches, Withdrawals& withdrawals,
                   Backstop& backstop, Holds& holds)
    : context_(context),
      own_watches_(own_watches),
      withdrawals_(withdrawals),
      backstop_(backstop),
      holds_(holds) {}

Nonce Attempts::fresh_nonce() { return Nonce{next_nonce_++}; }

bool Attempts::lease_ok() const {
  const auto lease = context_.session->lease();
  return !lease->ended() && context_.loop.now() < lease->deadline();
}

void Attempts::start(const std::shared_ptr<Attempt>& attempt) {
  context_.loop.assert_on_strand();
  if (attempt->machine.done()) return;  // cancelled before it began
  attempt->id = next_attempt_++;
  attempts_.emplace(attempt->id, attempt);
  if (context_.closing) {
    give_up(attempt, Errc::closed);
    return;
  }
  attempt->deadline_timer =
      context_.loop.at(attempt->deadline, [this, attempt] { give_up(attempt, attempt->late); });
  if (context_.session != nullptr) carry_out(attempt, attempt->machine.on_session(fresh_nonce()));
}

void Attempts::give_up(const std::shared_ptr<Attempt>& attempt, Errc why) {
  context_.loop.assert_on_strand();
  const char* what = why == Errc::timeout     ? "timed out"
                     : why == Errc::cancelled ? "cancelled by the caller"
                     : why == Errc::closed    ? "the client was closed"
                                              : "the store could not be reached in time";
  if (attempt->id == 0) {  // before start(), which then sees that the attempt is done
    attempt->machine.on_give_up(Error(why, what));
    if (const auto sink = std::exchange(attempt->sink, nullptr)) {
      sink->offer(describe(*attempt, {why, what}));
    }
    return;
  }
  carry_out(attempt, attempt->machine.on_give_up(Error(why, what)));
}

Error Attempts::describe(const Attempt& attempt, const Error& error) const {
  std::string text = "acquire \"" + attempt.name.text() + "\" on " + context_.backend.where() +
                     ": " + error.what();
  // An attempt with timeout 0 does not wait for the lock, so the text names no waiting time.
  if (attempt.started != Time{} && attempt.late == Errc::timeout) {
    text += " after " + seconds_text(context_.loop.now() - attempt.started);
  }
  if (attempt.rank != 0) {
    text += " behind " + std::to_string(attempt.machine.ahead()) + " others";
  }
  if (context_.session == nullptr && !context_.trouble.empty())
    text += "; no session: " + context_.trouble;
  if (!attempt.trouble.empty()) text += "; last error: " + attempt.trouble;
  return {error.errc(),
          text +
              "; the entry of this attempt, if there is one, is removed when the store "
              "can be reached, at the latest when the session ends"};
}

void Attempts::carry_out(const std::shared_ptr<Attempt>& attempt, Actions actions) {
  // Without a session the machine asks for nothing but its end.
  BATON_ASSERT(context_.session != nullptr ||
               !(actions.peek || actions.join || actions.look || actions.watch || actions.grant));
  // Before remove_waiter(), which resets the rank: the text says how many tickets were ahead.
  if (actions.fail) actions.fail = describe(*attempt, *actions.fail);
  if (actions.withdraw) {
    backstop_.remove_waiter(attempt);
    by_nonce_.erase(*actions.withdraw);
    withdrawals_.withdraw(attempt->name, *actions.withdraw, nullptr);
  }
  if (actions.peek) {
    const auto request = ++attempt->request;
    context_.session->peek(attempt->name, [this, attempt, request](const Result<bool>& busy) {
      if (attempt->request != request) return;
      if (!busy) attempt->trouble = busy.error().what();
      carry_out(attempt, attempt->machine.on_peeked(busy));
    });
  }
  if (actions.join || actions.look) join_or_look(attempt, actions.join, actions.hint);
  if (actions.watch) {
    own_watches_.watch(attempt->name, attempt->machine.own());
    backstop_.add_waiter(attempt, attempt->machine.own().rank);
    context_.session->unwatch(attempt->predecessor_watch);
    const auto request = attempt->request;
    attempt->predecessor_watch = context_.session->watch(
        attempt->name, *actions.watch, {attempt->machine.nonce(), false},
        [this, attempt, request](const WatchEvent& event) {
          if (attempt->request != request || context_.session == nullptr) return;
          attempt->predecessor_watch = WatchId::none;
          carry_out(attempt, attempt->machine.on_predecessor(event, lease_ok()));
        });
  }
  if (actions.pause) pause(attempt);
  if (actions.grant) grant(attempt);
  if (actions.fail) settle(attempt, *std::move(actions.fail));
}

void Attempts::join_or_look(const std::shared_ptr<Attempt>& attempt, bool join,
                            const LookHint& hint) {
  const auto request = ++attempt->request;
  const Nonce nonce = attempt->machine.nonce();
  by_nonce_[nonce] = attempt;
  auto answer = [this, attempt, request, join](Result<Standing> standing) {
    if (attempt->request != request || context_.session == nullptr) return;
    // From here on the token includes the token base, as users see it.
    const auto token = add_token_base(context_.token_base, standing ? standing->token : 0);
    if (standing && token) standing->token = *token;
    if (standing && !token) standing = token.error();
    if (standing) {
      attempt->failures = 0;
    } else {
      attempt->trouble = standing.error().what();
    }
    auto& machine = attempt->machine;
    carry_out(attempt, join ? machine.on_joined(standing, fresh_nonce(), lease_ok())
                            : machine.on_looked(standing, fresh_nonce(), lease_ok()));
  };
  if (join) {
    context_.session->join(attempt->name, nonce, std::move(answer));
  } else {
    context_.session->look(attempt->name, nonce, hint, std::move(answer));
  }
}

void Attempts::pause(const std::shared_ptr<Attempt>& attempt) {
  attempt->pause_timer = context_.loop.at(
      context_.loop.now() + context_.backoff(attempt->failures++), [this, attempt] {
        if (context_.session != nullptr) carry_out(attempt, attempt->machine.on_pause_over());
      });
}

void Attempts::own_ticket_event(Nonce nonce) {
  if (const auto attempt = by_nonce_.find(nonce); attempt != by_nonce_.end()) {
    const auto kept = attempt->second;
    carry_out(kept, kept->machine.on_own_ticket());
  }
}

void Attempts::look(const std::shared_ptr<Attempt>& attempt) {
  own_watches_.watch(attempt->name, attempt->machine.own());
  carry_out(attempt, attempt->machine.on_backstop());
}

void Attempts::grant(const std::shared_ptr<Attempt>& attempt) {
  const auto& machine = attempt->machine;
  auto hold = std::make_shared<Hold>(Hold::Parts{
      attempt->name, machine.nonce(), machine.token(), &context_.loop.clock(),
      context_.session->lease(), machine.sign(), context_.host.keeper(), context_.loop.now()});
  by_nonce_.erase(hold->nonce());
  holds_.add(hold, machine.own());
  context_.host.metric(
      {MetricEvent::Kind::acquired, {}, hold->token(), context_.loop.now() - attempt->started},
      &attempt->name);
  context_.host.hold_granted(hold);
  settle(attempt, hold);
}

void Attempts::settle(const std::shared_ptr<Attempt>& attempt,
                      Result<std::shared_ptr<Hold>> outcome) {
  BATON_ASSERT(attempt->machine.done());
  backstop_.remove_waiter(attempt);
  attempts_.erase(attempt->id);
  ++attempt->request;
  context_.loop.cancel(attempt->deadline_timer);
  context_.loop.cancel(attempt->pause_timer);
  if (context_.session != nullptr) context_.session->unwatch(attempt->predecessor_watch);
  if (const auto mine = by_nonce_.find(attempt->machine.nonce());
      mine != by_nonce_.end() && mine->second == attempt) {
    by_nonce_.erase(mine);
  }
  backstop_.rearm(attempt->name);
  if (!outcome) {
    const Errc code = outcome.error().errc();
    if (code == Errc::timeout || code == Errc::cancelled) {
      context_.host.metric(
          {code == Errc::timeout ? MetricEvent::Kind::timed_out : MetricEvent::Kind::cancelled,
           {},
           0,
           context_.loop.now() - attempt->started},
          &attempt->name);
    }
  }
  attempt->on_stop.reset();
  const std::shared_ptr<Hold> hold = outcome ? *outcome : nullptr;
  const auto sink = std::exchange(attempt->sink, nullptr);
  if (sink == nullptr || sink->offer(std::move(outcome)) || hold == nullptr) return;
  // The caller no longer waits: release the lock.
  if (hold->become_released()) holds_.retire(hold, nullptr);
}

// ---- what concerns all attempts. Each loop runs over a copy, because carry_out() may change the
// map

void Attempts::session_opened() {
  const auto attempts = attempts_;
  for (const auto& [id, attempt] : attempts) {
    if (context_.session == nullptr) return;
    carry_out(attempt, attempt->machine.on_session(fresh_nonce()));
  }
}

void Attempts::session_resumed() {
  const auto attempts = attempts_;
  for (const auto& [id, attempt] : attempts) {
    context_.loop.cancel(std::exchange(attempt->pause_timer, TimerId::none));
    carry_out(attempt, attempt->machine.on_session_resumed());
  }
}

void Attempts::session_ended() {
  const auto attempts = attempts_;
  for (const auto& [id, attempt] : attempts) {
    backstop_.remove_waiter(attempt);
    context_.loop.cancel(attempt->pause_timer);
    attempt->predecessor_watch = WatchId::none;
    ++attempt->request;
    by_nonce_.erase(attempt->machine.nonce());
    carry_out(attempt, attempt->machine.on_session_ended());
  }
}

void Attempts::fail_all(const Error& error) {
  const auto attempts = attempts_;
  for (const auto& [id, attempt] : attempts) {
    carry_out(attempt, attempt->machine.on_give_up(error));
  }
}

void Attempts::close_all() {
  const auto attempts = attempts_;
  for (const auto& [id, attempt] : attempts) give_up(attempt, Errc::closed);
}

void Attempts::abandon() noexcept {
  for (const auto& [id, attempt] : std::exchange(attempts_, {})) {
    attempt->on_stop.reset();
    if (const auto sink = std::exchange(attempt->sink, nullptr)) {
      sink->offer(
          Error(Errc::closed, "acquire \"" + attempt->name.text() + "\": the client was closed"));
    }
  }
}

}  // namespace baton::internal
