#include "common/async.h"

#include "common/mutex_impl.h"

#include <exception>
#include <string>
#include <utility>

namespace baton::internal {

UserCode::UserCode(Executor executor, LogFunction log)
    : executor_(std::move(executor)), log_(log), thread_(std::move(log)) {}

void UserCode::post_direct(Task task) { thread_.post(std::move(task)); }

void UserCode::post(Task task) {
  if (!executor_) {
    thread_.post(std::move(task));
    return;
  }
  // By way of our thread: the executor is user code too, and must not run on the loop.
  auto shared = std::make_shared<Task>(std::move(task));
  thread_.post([executor = executor_, log = log_, shared] {
    try {
      executor([shared, log] {
        try {
          (*shared)();
          *shared = nullptr;
        } catch (const std::exception& e) {
          log(LogLevel::error, std::string("a handler threw: ") + e.what());
        } catch (...) {
          log(LogLevel::error, "a handler threw something that is no std::exception");
        }
      });
    } catch (const std::exception& e) {
      log(LogLevel::error, std::string("the executor threw: ") + e.what());
    }
  });
}

bool AsyncSink::offer(Result<std::shared_ptr<Hold>> outcome) noexcept {
  // From here on the Lock owns the hold: if the executor drops the task, the lock is released.
  Result<Lock> result =
      outcome ? Result<Lock>(LockMaker::make(std::move(*outcome))) : Result<Lock>(outcome.error());
  user_code_->post([handler = std::move(handler_), result = std::move(result)]() mutable {
    handler->call(std::move(result));
  });
  return true;
}

void AsyncSink::offer_here(const Error& error) { handler_->call(error); }

void CoAttempt::start(std::coroutine_handle<> waiter) {
  waiter_ = waiter;
  // The coroutine may be resumed, and this object's owner destroyed, before the call returns.
  const auto self = shared_from_this();
  struct Resume {
    std::shared_ptr<CoAttempt> to;
    void operator()(Result<Lock> result) const { to->finish(std::move(result)); }
  };
  auto attempt = mutex_->client().acquire_async(mutex_->name(), options_,
                                                std::make_unique<Handler<Resume>>(Resume{self}));
  const std::lock_guard lock(guard_);
  if (!finished_) attempt_ = std::move(attempt);
}

void CoAttempt::finish(Result<Lock> result) {
  std::coroutine_handle<> waiter;
  {
    const std::lock_guard lock(guard_);
    result_.emplace(std::move(result));
    finished_ = true;
    attempt_.reset();
    waiter = std::exchange(waiter_, nullptr);
  }
  if (waiter) {
    waiter.resume();
    return;
  }
  std::optional<Result<Lock>> unwanted;  // nobody is there: a lock that came is given back
  const std::lock_guard lock(guard_);
  unwanted.swap(result_);
}

Lock CoAttempt::take() {
  std::optional<Result<Lock>> result;
  {
    const std::lock_guard lock(guard_);
    result = std::exchange(result_, std::nullopt);
  }
  return std::move(*result).value();
}

void CoAttempt::abandon() noexcept {
  std::shared_ptr<Attempt> attempt;
  {
    const std::lock_guard lock(guard_);
    waiter_ = nullptr;
    attempt = std::exchange(attempt_, nullptr);
  }
  if (attempt) mutex_->client().cancel(attempt);
}

}  // namespace baton::internal

namespace baton {

AcquireAwaitable::AcquireAwaitable(std::shared_ptr<internal::CoAttempt> attempt) noexcept
    : attempt_(std::move(attempt)) {}
AcquireAwaitable::AcquireAwaitable(AcquireAwaitable&&) noexcept = default;
AcquireAwaitable::~AcquireAwaitable() {
  if (attempt_) attempt_->abandon();
}
void AcquireAwaitable::await_suspend(std::coroutine_handle<> waiter) { attempt_->start(waiter); }
Lock AcquireAwaitable::await_resume() { return attempt_->take(); }

}  // namespace baton
