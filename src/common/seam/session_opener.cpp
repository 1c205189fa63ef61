#include "common/seam/session_opener.h"

#include <algorithm>
#include <exception>
#include <string>
#include <utility>

namespace baton::internal {

using std::chrono::milliseconds;

SessionOpener::SessionOpener(Loop& loop, const BackendOptions& options, Rules rules)
    : loop_(loop),
      session_timeout_(options.session_timeout),
      patience_(std::clamp(options.connect_timeout * 4 / 5, milliseconds(1),
                           std::max(options.session_timeout, milliseconds(5'000)))),
      log_(options.log),
      rules_(std::move(rules)) {}

void SessionOpener::open(Make make, Answer<std::unique_ptr<Session>> answer) {
  const std::uint64_t number = ++number_;
  answer_ = std::move(answer);
  start(make);
  // The session would retry without end. This timeout tells the caller the reason.
  loop_.cancel(timer_);
  timer_ = loop_.at(loop_.now() + patience_, [this, number] {
    if (number == number_) finish(rules_.silence());
  });
}

void SessionOpener::replace(Make make) { start(make); }

// What the session reports is handled deferred: finish() may destroy the session, which must not
// happen inside its own call.
void SessionOpener::start(Make& make) {
  const std::uint64_t number = ++session_number_;
  const auto handle = [this, number](Result<Done> result) {
    loop_.defer([this, number, result = std::move(result)]() mutable {
      if (number == session_number_) opened(std::move(result));
    });
  };
  try {
    session_ = make(handle);
  } catch (const std::exception& e) {
    session_.reset();
    handle(Error(Errc::connection_failed, e.what()));
  }
}

void SessionOpener::opened(Result<Done> result) {
  // A session that has ended does not retry: report the failure, so that the caller opens another
  // session.
  const bool over = session_ == nullptr || session_->info().state == SessionState::closed;
  if (result && over)
    result = Error(Errc::connection_failed, "the session ended while it was being opened");
  if (!result && !over && rules_.keeps_trying(result.error())) return;
  finish(result);
}

void SessionOpener::finish(const Result<Done>& result) {
  if (!answer_) return;
  loop_.cancel(timer_);
  rules_.finished();
  auto session = std::move(session_);
  auto answer = std::exchange(answer_, nullptr);
  if (!result) {
    ++number_;
    answer(result.error());
    return;
  }
  report_timeout(session->info().timeout);
  answer(std::move(session));
}

void SessionOpener::report_timeout(milliseconds granted) {
  if (granted == session_timeout_ || std::exchange(timeout_reported_, true)) return;
  log_(granted > session_timeout_ ? LogLevel::warning : LogLevel::info,
       rules_.where() + ": asked for a session timeout of " +
           std::to_string(session_timeout_.count()) + " ms, the server grants " +
           std::to_string(granted.count()) + " ms");
}

}  // namespace baton::internal
