#include "common/client/session_keeper.h"

#include "common/base/check.h"
#include "common/seam/token_base.h"

#include <utility>

namespace baton::internal {

SessionKeeper::SessionKeeper(EngineContext& context, OwnWatches& own_watches,
                             Withdrawals& withdrawals, Holds& holds, Attempts& attempts)
    : context_(context),
      own_watches_(own_watches),
      withdrawals_(withdrawals),
      holds_(holds),
      attempts_(attempts) {}

SessionKeeper::~SessionKeeper() { lifetime_.end(); }

void SessionKeeper::open(Answer<Done> answer) {
  context_.loop.assert_on_strand();
  opened_ = std::move(answer);
  try_open();
}

void SessionKeeper::try_open() {
  open_timer_ = TimerId::none;
  if (context_.closing) return;
  drop_newcomer();  // a single session at a time, also if the newcomer is still being closed
  context_.backend.open(*this, lifetime_.guard([this](Result<std::unique_ptr<Session>> session) {
    if (context_.closing) return;
    if (session) {
      check_token_base(std::move(session).value());
    } else {
      open_failed(session.error());
    }
  }));
}

// Checks every session: the store may have been wiped or replaced since the last session.
void SessionKeeper::check_token_base(std::unique_ptr<Session> session) {
  BATON_ASSERT(context_.session == nullptr && newcomer_ == nullptr);  // one session at a time
  newcomer_ = std::move(session);
  newcomer_->settle_token_base(
      context_.token_base,
      lifetime_.guard([this, number = newcomers_](const Result<std::uint64_t>& base) {
        if (number != newcomers_ || dismissed_) return;
        if (base && *base == context_.token_base) {
          ++newcomers_;
          session_opened(std::move(newcomer_));
          return;
        }
        const Error why = base ? token_base_differs(context_.token_base, *base) : base.error();
        dismiss_newcomer();
        open_failed({why.errc(), "connect to " + context_.backend.where() + ": " + why.what()});
      }));
}

// Closes the refused session. Otherwise the store would keep it until it times out.
void SessionKeeper::dismiss_newcomer() {
  dismissed_ = true;
  newcomer_->close(lifetime_.guard([this, number = newcomers_](Result<Done> result) {
    if (number != newcomers_) return;
    drop_newcomer();
    if (closed_) std::exchange(closed_, nullptr)(std::move(result));
  }));
}

void SessionKeeper::drop_newcomer() {
  ++newcomers_;
  dismissed_ = false;
  if (newcomer_ == nullptr) return;
  newcomer_->lease()->end();
  // Deferred: the session may be calling us from within itself.
  context_.loop.defer(
      [dead = std::shared_ptr<Session>(std::move(newcomer_))]() mutable { dead.reset(); });
}

void SessionKeeper::newcomer_ended(const std::string& detail) {
  const bool dismissed = dismissed_;
  drop_newcomer();
  if (closed_) {
    std::exchange(closed_, nullptr)(Done{});
  } else if (!dismissed) {
    open_failed({Errc::connection_failed, "the session ended right after it opened: " + detail});
  }
}

void SessionKeeper::session_opened(std::unique_ptr<Session> session) {
  BATON_ASSERT(context_.session == nullptr && holds_.empty() && own_watches_.empty() &&
               withdrawals_.empty());
  context_.session = std::move(session);
  ++context_.epoch;
  open_failures_ = 0;
  context_.trouble.clear();
  context_.host.metric({MetricEvent::Kind::session_started, {}, 0, {}}, nullptr);
  if (opened_) std::exchange(opened_, nullptr)(Done{});
  attempts_.session_opened();
  answer_askers(nullptr);
}

void SessionKeeper::with_session(Time until, Answer<Session*> answer) {
  context_.loop.assert_on_strand();
  if (context_.session != nullptr) {
    answer(context_.session.get());
    return;
  }
  if (context_.closing || until <= context_.loop.now()) {
    answer(context_.closing
               ? Error(Errc::closed, "the client was closed")
               : Error(Errc::connection_failed, "there is no session: " + context_.trouble));
    return;
  }
  const std::uint64_t id = next_asker_++;
  const TimerId timer = context_.loop.at(until, [this, id] {
    auto asker = askers_.extract(id);
    if (!asker) return;
    asker.mapped().answer(
        Error(Errc::connection_failed, "there is no session: " + context_.trouble));
  });
  askers_.emplace(id, Asker{std::move(answer), timer});
}

void SessionKeeper::answer_askers(const Error* error) {
  // Check the session before each answer: an answer may end the session, and the remaining askers
  // then wait for the next session.
  while (!askers_.empty() && (error != nullptr || context_.session != nullptr)) {
    auto asker = askers_.extract(askers_.begin());
    context_.loop.cancel(asker.mapped().timer);
    asker.mapped().answer(error != nullptr ? Result<Session*>(*error)
                                           : Result<Session*>(context_.session.get()));
  }
}

void SessionKeeper::open_failed(const Error& error) {
  context_.trouble = error.what();
  if (!transient(error)) {
    if (opened_) {
      std::exchange(opened_, nullptr)(error);
      return;
    }
    // A permanent error ends all current attempts. The client still retries, for later calls.
    context_.log(LogLevel::error, std::string("cannot open a new session: ") + error.what());
    attempts_.fail_all(error);
    answer_askers(&error);
  } else if (open_failures_ == 0) {
    context_.log(LogLevel::warning,
                 std::string("cannot reach the store, retrying: ") + error.what());
  }
  open_timer_ = context_.loop.at(context_.loop.now() + context_.backoff(open_failures_++),
                                 [this] { try_open(); });
}

void SessionKeeper::session_ended(std::error_code reason, const std::string& detail) {
  context_.loop.assert_on_strand();
  if (context_.session == nullptr && newcomer_ != nullptr) {
    newcomer_ended(detail);
    return;
  }
  if (context_.session == nullptr) return;
  const Errc why = reason == Errc::store_changed ? Errc::store_changed : Errc::session_expired;
  context_.session->lease()->end(why);
  context_.trouble = detail;
  context_.log(LogLevel::warning,
               "session on " + context_.backend.where() + " ended (" + reason.message() +
                   "): " + detail + "; " + std::to_string(holds_.size()) + " locks lost, " +
                   std::to_string(attempts_.size()) + " waiters join the queue again");
  context_.host.metric({MetricEvent::Kind::session_ended, {}, 0, {}}, nullptr);
  // Deferred: the session may be calling us from within itself.
  context_.loop.defer(
      [dead = std::shared_ptr<Session>(std::move(context_.session))]() mutable { dead.reset(); });
  ++context_.epoch;
  own_watches_.session_ended();

  holds_.lose_all(why);
  // The store removes the tickets with the session, and no answer can confirm that any more.
  withdrawals_.end(
      Error(Errc::session_expired, "the session ended before the store confirmed: " + detail));
  attempts_.session_ended();
  if (!context_.closing) {
    try_open();
  } else if (closed_) {
    std::exchange(closed_, nullptr)(Done{});
  }
}

void SessionKeeper::session_resumed() {
  context_.loop.assert_on_strand();
  if (context_.session == nullptr) return;
  attempts_.session_resumed();
  holds_.check_all();
  withdrawals_.retry_now();
}

SessionInfo SessionKeeper::info() const {
  context_.loop.assert_on_strand();
  SessionInfo info;
  if (context_.session != nullptr) {
    info = context_.session->info();
    info.token_base = context_.token_base;
    if (info.state == SessionState::connected &&
        context_.loop.now() >= context_.session->lease()->suspect_at()) {
      info.state = SessionState::suspect;
    }
  } else {
    info.state = context_.closing ? SessionState::closed : SessionState::connecting;
  }
  return info;
}

void SessionKeeper::close(Answer<Done> answer) {
  context_.loop.assert_on_strand();
  context_.closing = true;
  context_.loop.cancel(open_timer_);
  const Error closed(Errc::closed, "the client was closed");
  answer_askers(&closed);
  attempts_.close_all();
  holds_.lose_all(Errc::closed);
  if (context_.session == nullptr && newcomer_ == nullptr) {
    answer(Done{});
    return;
  }
  closed_ = std::move(answer);
  if (context_.session == nullptr) {
    if (!dismissed_) dismiss_newcomer();
    return;
  }
  context_.session->close([this](Result<Done> result) {
    if (context_.session != nullptr) context_.session->lease()->end();
    withdrawals_.end(result);
    if (closed_) std::exchange(closed_, nullptr)(std::move(result));
  });
}

void SessionKeeper::abandon() noexcept {
  context_.loop.assert_on_strand();
  context_.closing = true;
  if (context_.session != nullptr) context_.session->lease()->end();
  attempts_.abandon();
  holds_.abandon();
  withdrawals_.abandon();
  askers_.clear();
  newcomer_.reset();
  context_.session.reset();
}

}  // namespace baton::internal
