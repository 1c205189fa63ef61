// Sessions and attempts; engine_holds.cpp has the rest.
#include "common/engine.h"

#include "common/mutant.h"

#include <algorithm>
#include <utility>

namespace baton::internal {

namespace {
using std::chrono::milliseconds;

std::string seconds_text(Nanos d) {
  const auto tenths = std::chrono::duration_cast<milliseconds>(d).count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}
}  // namespace

Engine::Engine(Backend& backend, EngineHost& host, LogFunction log, std::uint32_t seed)
    : loop_(backend.loop()),
      backend_(backend),
      host_(host),
      log_(std::move(log)),
      random_(seed),
      alive_(std::make_shared<bool>(true)) {}

Engine::~Engine() { *alive_ = false; }

Nonce Engine::fresh_nonce() {
  if (mutant(Mutant::shared_nonce)) return Nonce{1};
  return Nonce{next_nonce_++};
}

bool Engine::lease_ok() const {
  const auto lease = session_->lease();
  return !lease->ended() && loop_.now() < lease->deadline();
}

std::chrono::nanoseconds Engine::backoff(int failures) {
  // 50 ms, doubling to 5 s, with jitter of a half: many clients must not come back in step.
  const auto base = std::min<std::int64_t>(50LL << std::min(failures, 7), 5000);
  std::uniform_int_distribution<std::int64_t> jitter(base * 500'000, base * 1'000'000);
  return Nanos(jitter(random_));
}

// ---- the session

void Engine::open(Answer<Done> answer) {
  opened_ = std::move(answer);
  try_open();
}

void Engine::try_open() {
  open_timer_ = TimerId::none;
  if (closing_) return;
  backend_.open(*this, [this, alive = alive_](Result<std::unique_ptr<Session>> session) {
    if (!*alive || closing_) return;
    if (session) {
      session_opened(std::move(session).value());
    } else {
      open_failed(session.error());
    }
  });
}

void Engine::session_opened(std::unique_ptr<Session> session) {
  session_ = std::move(session);
  ++epoch_;
  open_failures_ = 0;
  trouble_.clear();
  host_.metric({MetricEvent::Kind::session_started, {}, 0, {}}, nullptr);
  if (opened_) std::exchange(opened_, nullptr)(Done{});
  const auto attempts = attempts_;  // carrying out may change the map
  for (const auto& [id, attempt] : attempts) {
    if (session_ == nullptr) return;
    carry_out(attempt, attempt->machine.on_session(fresh_nonce()));
  }
  answer_askers(nullptr);
}

void Engine::with_session(Time until, Answer<Session*> answer) {
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
  // One after the other: an answer may end the session, and then the rest waits for the next.
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
    // A permanent error is told to all who wait now; whoever comes later tries again.
    log_(LogLevel::error, std::string("cannot open a new session: ") + error.what());
    const auto attempts = attempts_;
    for (const auto& [id, attempt] : attempts) {
      carry_out(attempt, attempt->machine.on_give_up(error));
    }
    answer_askers(&error);
  } else if (open_failures_ == 0) {
    log_(LogLevel::warning, std::string("cannot reach the store, trying on: ") + error.what());
  }
  open_timer_ = loop_.at(loop_.now() + backoff(open_failures_++), [this] { try_open(); });
}

void Engine::session_ended(std::error_code reason, const std::string& detail) {
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
  // The store forgets our tickets with the session; nobody can confirm it to us any more.
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
  SessionInfo info;
  if (session_ != nullptr) {
    info = session_->info();
    if (info.state == SessionState::connected && loop_.now() >= session_->lease()->suspect_at()) {
      info.state = SessionState::suspect;
    }
  } else {
    info.state = closing_ ? SessionState::closed : SessionState::connecting;
  }
  return info;
}

// ---- attempts

void Engine::start(const std::shared_ptr<Attempt>& attempt) {
  if (attempt->machine.done()) return;  // cancelled before it began
  attempt->id = next_attempt_++;
  attempts_.emplace(attempt->id, attempt);
  if (closing_) {
    give_up(attempt, Errc::closed);
    return;
  }
  attempt->deadline_timer =
      loop_.at(attempt->deadline, [this, attempt] { give_up(attempt, attempt->late); });
  if (session_ != nullptr) carry_out(attempt, attempt->machine.on_session(fresh_nonce()));
}

void Engine::give_up(const std::shared_ptr<Attempt>& attempt, Errc why) {
  const char* what = why == Errc::timeout     ? "not in time"
                     : why == Errc::cancelled ? "cancelled by the caller"
                     : why == Errc::closed    ? "the client was closed"
                                              : "the store could not be reached in time";
  if (attempt->id == 0) {  // before start(): remember it
    attempt->machine.on_give_up(Error(why, what));
    if (const auto sink = std::exchange(attempt->sink, nullptr)) {
      sink->offer(describe(*attempt, {why, what}));
    }
    return;
  }
  carry_out(attempt, attempt->machine.on_give_up(Error(why, what)));
}

Error Engine::describe(const Attempt& attempt, const Error& error) const {
  std::string text =
      "acquire \"" + attempt.name.text() + "\" on " + backend_.where() + ": " + error.what();
  // One attempt did not wait; there is no "after" to tell.
  if (attempt.started != Time{} && attempt.late == Errc::timeout) {
    text += " after " + seconds_text(loop_.now() - attempt.started);
  }
  if (attempt.rank != 0) {
    text += " behind " + std::to_string(attempt.machine.ahead()) + " others";
  }
  if (session_ == nullptr && !trouble_.empty()) text += "; no session: " + trouble_;
  if (!attempt.trouble.empty()) text += "; last trouble: " + attempt.trouble;
  return {error.errc(), text + "; no entry of ours stays in the queue"};
}

void Engine::carry_out(const std::shared_ptr<Attempt>& attempt, Actions actions) {
  // Described now, while it is known how many stood ahead.
  if (actions.fail) actions.fail = describe(*attempt, *actions.fail);
  if (actions.withdraw) {
    clear_waiting(attempt);
    by_nonce_.erase(*actions.withdraw);
    withdraw(attempt->name, *actions.withdraw, nullptr);
  }
  if (actions.peek) {
    const auto request = ++attempt->request;
    session_->peek(attempt->name, [this, attempt, request](const Result<bool>& busy) {
      if (attempt->request != request) return;
      if (!busy) attempt->trouble = busy.error().what();
      carry_out(attempt, attempt->machine.on_peeked(busy));
    });
  }
  if (actions.join || actions.look) join_or_look(attempt, actions.join);
  if (actions.watch) {
    watch_own(attempt->name, attempt->machine.own());
    set_waiting(attempt, attempt->machine.own().rank);
    session_->unwatch(attempt->predecessor_watch);
    const auto request = attempt->request;
    attempt->predecessor_watch =
        session_->watch(attempt->name, *actions.watch, {attempt->machine.nonce(), false},
                        [this, attempt, request](WatchEvent event) {
                          if (attempt->request != request || session_ == nullptr) return;
                          attempt->predecessor_watch = WatchId::none;
                          carry_out(attempt, attempt->machine.on_predecessor(event, lease_ok()));
                        });
  }
  if (actions.pause) pause(attempt);
  if (actions.grant) grant(attempt);
  if (actions.fail) settle(attempt, *std::move(actions.fail));
}

void Engine::join_or_look(const std::shared_ptr<Attempt>& attempt, bool join) {
  const auto request = ++attempt->request;
  const Nonce nonce = attempt->machine.nonce();
  by_nonce_[nonce] = attempt;
  auto answer = [this, attempt, request, join](const Result<Standing>& standing) {
    if (attempt->request != request || session_ == nullptr) return;
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
    session_->join(attempt->name, nonce, std::move(answer));
  } else {
    session_->look(attempt->name, nonce, std::move(answer));
  }
}

void Engine::pause(const std::shared_ptr<Attempt>& attempt) {
  attempt->pause_timer = loop_.at(loop_.now() + backoff(attempt->failures++), [this, attempt] {
    if (session_ != nullptr) carry_out(attempt, attempt->machine.on_pause_over());
  });
}

void Engine::grant(const std::shared_ptr<Attempt>& attempt) {
  const auto& machine = attempt->machine;
  auto hold = std::make_shared<Hold>(Hold::Parts{attempt->name, machine.nonce(), machine.token(),
                                                 &loop_.clock(), session_->lease(), machine.sign(),
                                                 host_.keeper(), loop_.now()});
  holds_.emplace(hold->nonce(), hold);
  groups_[attempt->name].holds.push_back(hold->nonce());
  by_nonce_.erase(hold->nonce());
  watch_own(attempt->name, machine.own(), true);
  host_.metric({MetricEvent::Kind::acquired, {}, hold->token(), loop_.now() - attempt->started},
               &attempt->name);
  host_.hold_granted(hold);
  settle(attempt, hold);
}

void Engine::settle(const std::shared_ptr<Attempt>& attempt,
                    Result<std::shared_ptr<Hold>> outcome) {
  clear_waiting(attempt);
  attempts_.erase(attempt->id);
  ++attempt->request;
  loop_.cancel(attempt->deadline_timer);
  loop_.cancel(attempt->pause_timer);
  if (session_ != nullptr) session_->unwatch(attempt->predecessor_watch);
  if (const auto mine = by_nonce_.find(attempt->machine.nonce());
      mine != by_nonce_.end() && mine->second == attempt) {
    by_nonce_.erase(mine);
  }
  if (groups_.contains(attempt->name)) {
    arm_backstop(attempt->name, groups_[attempt->name]);
    drop_empty_group(attempt->name);
  }
  if (!outcome) {
    const Errc code = outcome.error().errc();
    if (code == Errc::timeout || code == Errc::cancelled) {
      host_.metric(
          {code == Errc::timeout ? MetricEvent::Kind::timed_out : MetricEvent::Kind::cancelled,
           {},
           0,
           loop_.now() - attempt->started},
          &attempt->name);
    }
  }
  attempt->on_stop.reset();
  const std::shared_ptr<Hold> hold = outcome ? *outcome : nullptr;
  const auto sink = std::exchange(attempt->sink, nullptr);
  if (sink == nullptr || sink->offer(std::move(outcome)) || hold == nullptr) return;
  // Granted to somebody who has left in the meantime.
  if (hold->become_released()) drop(hold, nullptr);
}

void Engine::close(Answer<Done> answer) {
  closing_ = true;
  loop_.cancel(open_timer_);
  const Error closed(Errc::closed, "the client was closed");
  answer_askers(&closed);
  const auto attempts = attempts_;
  for (const auto& [id, attempt] : attempts) give_up(attempt, Errc::closed);
  const auto holds = holds_;
  for (const auto& [nonce, hold] : holds) lose(hold, Errc::closed);
  if (session_ == nullptr) {
    answer(Done{});
    return;
  }
  closed_ = std::move(answer);
  session_->close([this](Result<Done> result) {
    if (session_ != nullptr) session_->lease()->end();
    auto jobs = std::exchange(jobs_, {});
    for (auto& [nonce, job] : jobs) {
      loop_.cancel(job.timer);
      for (auto& waiting : job.answers) waiting(result);
    }
    if (closed_) std::exchange(closed_, nullptr)(std::move(result));
  });
}

void Engine::abandon() noexcept {
  closing_ = true;
  if (session_ != nullptr) session_->lease()->end();
  for (const auto& [id, attempt] : std::exchange(attempts_, {})) {
    attempt->on_stop.reset();
    if (const auto sink = std::exchange(attempt->sink, nullptr)) {
      sink->offer(
          Error(Errc::closed, "acquire \"" + attempt->name.text() + "\": the client was closed"));
    }
  }
  for (const auto& [nonce, hold] : std::exchange(holds_, {})) {
    if (hold->become_lost(Errc::closed)) host_.hold_lost(hold);
  }
  jobs_.clear();  // whoever waits for one is told by its promise
  askers_.clear();
  session_.reset();
}

}  // namespace baton::internal
