// The sessions of the Engine: how they are opened and checked, and how they end. engine.cpp has the
// attempts.
#include "common/client/engine.h"

#include "common/seam/token_base.h"

#include <utility>

namespace baton::internal {

void Engine::open(Answer<Done> answer) {
  loop_.assert_on_strand();
  opened_ = std::move(answer);
  try_open();
}

void Engine::try_open() {
  open_timer_ = TimerId::none;
  if (closing_) return;
  drop_newcomer();  // a single session at a time, also if the newcomer is still being closed
  backend_.open(*this, lifetime_.guard([this](Result<std::unique_ptr<Session>> session) {
    if (closing_) return;
    if (session) {
      check_token_base(std::move(session).value());
    } else {
      open_failed(session.error());
    }
  }));
}

// Checks every session: the store may have been wiped or replaced since the last session.
void Engine::check_token_base(std::unique_ptr<Session> session) {
  BATON_ASSERT(session_ == nullptr && newcomer_ == nullptr);  // one session at a time
  newcomer_ = std::move(session);
  newcomer_->settle_token_base(
      token_base_, lifetime_.guard([this, number = newcomers_](const Result<std::uint64_t>& base) {
        if (number != newcomers_ || dismissed_) return;
        if (base && *base == token_base_) {
          ++newcomers_;
          session_opened(std::move(newcomer_));
          return;
        }
        const Error why = base ? token_base_differs(token_base_, *base) : base.error();
        dismiss_newcomer();
        open_failed({why.errc(), "connect to " + backend_.where() + ": " + why.what()});
      }));
}

// Closes the refused session. Otherwise the store would keep it until it times out.
void Engine::dismiss_newcomer() {
  dismissed_ = true;
  newcomer_->close(lifetime_.guard([this, number = newcomers_](Result<Done> result) {
    if (number != newcomers_) return;
    drop_newcomer();
    if (closed_) std::exchange(closed_, nullptr)(std::move(result));
  }));
}

void Engine::drop_newcomer() {
  ++newcomers_;
  dismissed_ = false;
  if (newcomer_ == nullptr) return;
  newcomer_->lease()->end();
  // Deferred: the session may be calling us from within itself.
  loop_.defer([dead = std::shared_ptr<Session>(std::move(newcomer_))]() mutable { dead.reset(); });
}

void Engine::newcomer_ended(const std::string& detail) {
  const bool dismissed = dismissed_;
  drop_newcomer();
  if (closed_) {
    std::exchange(closed_, nullptr)(Done{});
  } else if (!dismissed) {
    open_failed({Errc::connection_failed, "the session ended right after it opened: " + detail});
  }
}

void Engine::session_opened(std::unique_ptr<Session> session) {
  BATON_ASSERT(session_ == nullptr && holds_.empty() && own_watches_.empty() && jobs_.empty());
  session_ = std::move(session);
  ++epoch_;
  open_failures_ = 0;
  trouble_.clear();
  host_.metric({MetricEvent::Kind::session_started, {}, 0, {}}, nullptr);
  if (opened_) std::exchange(opened_, nullptr)(Done{});
  const auto attempts = attempts_;  // a copy, because carry_out() may change the map
  for (const auto& [id, attempt] : attempts) {
    if (session_ == nullptr) return;
    carry_out(attempt, attempt->machine.on_session(fresh_nonce()));
  }
  answer_askers(nullptr);
}

void Engine::with_session(Time until, Answer<Session*> answer) {
  loop_.assert_on_strand();
  if (session_ != nullptr) {
    answer(session_.get());
    return;
  }
  if (closing_ || until <= loop_.now()) {
    answer(closing_ ? Error(Errc::closed, "the client was closed")
                    : Error(Errc::connection_failed, "there is no session: " + trouble_));
    return;
  }
  const std::uint64_t id = next_asker_++;
  const TimerId timer = loop_.at(until, [this, id] {
    auto asker = askers_.extract(id);
    if (!asker) return;
    asker.mapped().answer(Error(Errc::connection_failed, "there is no session: " + trouble_));
  });
  askers_.emplace(id, Asker{std::move(answer), timer});
}

void Engine::answer_askers(const Error* error) {
  // Check the session before each answer: an answer may end the session, and the remaining askers
  // then wait for the next session.
  while (!askers_.empty() && (error != nullptr || session_ != nullptr)) {
    auto asker = askers_.extract(askers_.begin());
    loop_.cancel(asker.mapped().timer);
    asker.mapped().answer(error != nullptr ? Result<Session*>(*error)
                                           : Result<Session*>(session_.get()));
  }
}

void Engine::open_failed(const Error& error) {
  trouble_ = error.what();
  if (!transient(error)) {
    if (opened_) {
      std::exchange(opened_, nullptr)(error);
      return;
    }
    // A permanent error ends all current attempts. The client still retries, for later calls.
    log_(LogLevel::error, std::string("cannot open a new session: ") + error.what());
    const auto attempts = attempts_;
    for (const auto& [id, attempt] : attempts) {
      carry_out(attempt, attempt->machine.on_give_up(error));
    }
    answer_askers(&error);
  } else if (open_failures_ == 0) {
    log_(LogLevel::warning, std::string("cannot reach the store, retrying: ") + error.what());
  }
  open_timer_ = loop_.at(loop_.now() + backoff(open_failures_++), [this] { try_open(); });
}

void Engine::session_ended(std::error_code reason, const std::string& detail) {
  loop_.assert_on_strand();
  if (session_ == nullptr && newcomer_ != nullptr) {
    newcomer_ended(detail);
    return;
  }
  if (session_ == nullptr) return;
  const Errc why = reason == Errc::store_changed ? Errc::store_changed : Errc::session_expired;
  session_->lease()->end(why);
  trouble_ = detail;
  log_(LogLevel::warning, "session on " + backend_.where() + " ended (" + reason.message() + "): " +
                              detail + "; " + std::to_string(holds_.size()) + " locks lost, " +
                              std::to_string(attempts_.size()) + " waiters join the queue again");
  host_.metric({MetricEvent::Kind::session_ended, {}, 0, {}}, nullptr);
  // Deferred: the session may be calling us from within itself.
  loop_.defer([dead = std::shared_ptr<Session>(std::move(session_))]() mutable { dead.reset(); });
  ++epoch_;
  own_watches_.clear();

  const auto holds = holds_;
  for (const auto& [nonce, hold] : holds) lose(hold, why);
  // The store removes the tickets with the session, and no answer can confirm that any more.
  auto jobs = std::exchange(jobs_, {});
  for (auto& [nonce, job] : jobs) {
    loop_.cancel(job.timer);
    for (auto& answer : job.answers) {
      answer(
          Error(Errc::session_expired, "the session ended before the store confirmed: " + detail));
    }
  }
  const auto attempts = attempts_;
  for (const auto& [id, attempt] : attempts) {
    clear_waiting(attempt);
    loop_.cancel(attempt->pause_timer);
    attempt->predecessor_watch = WatchId::none;
    ++attempt->request;
    by_nonce_.erase(attempt->machine.nonce());
    carry_out(attempt, attempt->machine.on_session_ended());
  }
  if (!closing_) {
    try_open();
  } else if (closed_) {
    std::exchange(closed_, nullptr)(Done{});
  }
}

void Engine::session_resumed() {
  loop_.assert_on_strand();
  if (session_ == nullptr) return;
  const auto attempts = attempts_;
  for (const auto& [id, attempt] : attempts) {
    loop_.cancel(std::exchange(attempt->pause_timer, TimerId::none));
    carry_out(attempt, attempt->machine.on_session_resumed());
  }
  const auto holds = holds_;
  for (const auto& [nonce, hold] : holds) check_hold(hold);
  retry_jobs();
}

SessionInfo Engine::info() const {
  loop_.assert_on_strand();
  SessionInfo info;
  if (session_ != nullptr) {
    info = session_->info();
    info.token_base = token_base_;
    if (info.state == SessionState::connected && loop_.now() >= session_->lease()->suspect_at()) {
      info.state = SessionState::suspect;
    }
  } else {
    info.state = closing_ ? SessionState::closed : SessionState::connecting;
  }
  return info;
}

}  // namespace baton::internal
