// The asynchronous calls of ClientImpl, and refused_call(), which the blocking calls use too.
#include "common/client/async.h"
#include "common/client/client_impl.h"

#include <chrono>
#include <string>
#include <utility>

namespace baton::internal {

namespace {
constexpr std::chrono::seconds kSlowHandler{2};
constexpr std::chrono::seconds kSlowHandlerLogEvery{10};
}  // namespace

std::optional<Error> refused_call(const LockName& name, const AcquireOptions& options) {
  if (options.timeout && options.timeout->count() < 0) {
    return Error(Errc::invalid_argument,
                 "acquire \"" + name.text() + "\": the timeout is negative; use 0 or more");
  }
  if (options.stop.stop_requested()) {
    return Error(Errc::cancelled, "acquire \"" + name.text() +
                                      "\": stop was already requested on AcquireOptions::stop");
  }
  return std::nullopt;
}

std::shared_ptr<Attempt> ClientImpl::acquire_async(const LockName& name,
                                                   const AcquireOptions& options,
                                                   std::unique_ptr<HandlerBase> handler) {
  auto sink = std::make_shared<AsyncSink>(std::move(handler), user_code_,
                                          [this] { watch_pending_grants(); });
  if (forked()) {
    sink->offer_here(gone_error("acquire \"" + name.text() + "\""));
    return nullptr;
  }
  auto refused = refused_call(name, options);
  if (closed()) {
    sink->offer_after_close(refused ? *std::move(refused)
                                    : gone_error("acquire \"" + name.text() + "\""));
    return nullptr;
  }
  if (refused) {
    sink->offer(*std::move(refused));
    return nullptr;
  }
  auto attempt = make_attempt(name, options, std::move(sink));
  start(attempt);
  return attempt;
}

void ClientImpl::cancel(const std::shared_ptr<Attempt>& attempt) noexcept {
  if (forked()) return;
  loop_.post([this, attempt] { engine_.give_up(attempt, Errc::cancelled); });
}

// On the strand, because only the engine grants locks.
void ClientImpl::watch_pending_grants() {
  loop_.assert_on_strand();
  if (pending_timer_ != TimerId::none) return;
  pending_timer_ = loop_.at(loop_.now() + kSlowHandler, [this] {
    pending_timer_ = TimerId::none;
    const auto oldest = user_code_->grants().oldest();
    if (!oldest) return;
    watch_pending_grants();
    const Time now = BootClock::now();
    const auto waited = std::chrono::duration_cast<std::chrono::seconds>(now - oldest->since);
    if (waited < kSlowHandler || now < pending_quiet_until_) return;
    pending_quiet_until_ = now + kSlowHandlerLogEvery;
    log_(LogLevel::warning,
         "lock \"" + oldest->name + "\" on " + backend_->where() + " was granted " +
             std::to_string(waited.count()) + " s ago, and its handler has not started: " +
             (user_code_->has_executor() ? "the executor has not run it"
                                         : "the callback thread is in another handler") +
             "; " + std::to_string(oldest->count) +
             " granted locks wait like this, and no other client can have them. Make handlers "
             "return sooner, or set ClientOptions::executor to run them on more threads");
  });
}

void ClientImpl::coroutine_destroyed(const LockName& name) noexcept {
  // With an executor, only the program knows on which thread the coroutine resumes.
  if (forked() || user_code_->has_executor() || user_code_->on_thread()) return;
  if (warned_of_destruction_.exchange(true, std::memory_order_relaxed)) return;
  try {
    log_(LogLevel::warning,
         "co_acquire of \"" + name.text() +
             "\": the waiting coroutine was destroyed on a thread that is not the client's "
             "callback thread. Had it been resumed at that moment, the program would have ended. "
             "Request stop on AcquireOptions::stop and let the coroutine end (logged once)");
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for the log line
  }
}

}  // namespace baton::internal
