#include "common/client/async.h"

#include "common/base/fork_guard.h"
#include "common/client/handler_scope.h"
#include "common/client/mutex_impl.h"

#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <utility>

namespace baton::internal {

namespace {
// Stated in <baton/client.h>.
constexpr int kPromptAfterClose = 100;
constexpr std::chrono::milliseconds kPaceAfterClose{1000};
}  // namespace

int& HandlerScope::depth() noexcept {
  thread_local int depth = 0;
  thread_local std::uint64_t generation = fork_generation();
  if (generation != fork_generation()) {
    generation = fork_generation();
    depth = 0;
  }
  return depth;
}

UserCode::UserCode(Executor executor, LogFunction log)
    : executor_(std::move(executor)), log_(log), thread_(std::move(log)) {}

void UserCode::post_direct(Task task) { thread_.post(std::move(task)); }

void UserCode::post(Task task) { thread_.post(through_executor(std::move(task))); }

void UserCode::post_after_close(Task task) {
  const int earlier = after_close_.load(std::memory_order_relaxed);
  const bool prompt = earlier < kPromptAfterClose;
  if (prompt)
    after_close_.store(earlier + 1, std::memory_order_relaxed);  // the count may be inexact
  thread_.post_late(through_executor(std::move(task)),
                    prompt ? std::chrono::milliseconds(0) : kPaceAfterClose);
}

Task UserCode::through_executor(Task task) {
  if (!executor_) return task;
  // Called on the callback thread: the executor is user code too, and must not run on the loop.
  auto shared = std::make_shared<Task>(std::move(task));
  return [executor = executor_, log = log_, shared] {
    try {
      executor([shared, log] {
        const HandlerScope scope;
        try {
          (*shared)();
          *shared = nullptr;
        } catch (const std::exception& e) {
          log(LogLevel::error, std::string("a handler threw: ") + e.what());
        } catch (...) {
          log(LogLevel::error, "a handler threw something that is not a std::exception");
        }
      });
    } catch (const std::exception& e) {
      log(LogLevel::error, std::string("the executor threw: ") + e.what());
    }
  };
}

bool AsyncSink::offer(Result<std::shared_ptr<Hold>> outcome) noexcept {
  // From here on the Lock owns the hold: if the executor drops the task, the lock is released.
  if (!outcome) {
    user_code_->post(
        [handler = std::move(handler_), error = outcome.error()] { handler->call(error); });
    return true;
  }
  auto pending = user_code_->grants().add((*outcome)->name().text());
  Lock lock = LockMaker::make(std::move(*outcome));
  user_code_->post([handler = std::move(handler_), pending = std::move(pending),
                    lock = std::move(lock)]() mutable {
    pending.started();
    handler->call(std::move(lock));
  });
  granted_();
  return true;
}

void AsyncSink::offer_after_close(const Error& error) {
  user_code_->post_after_close([handler = std::move(handler_), error] { handler->call(error); });
}

void AsyncSink::offer_here(const Error& error) { handler_->call(error); }

void CoAttempt::start(std::coroutine_handle<> waiter) {
  // The coroutine may be resumed, and this object's owner destroyed, before the call returns.
  const auto self = shared_from_this();
  {
    const MutexLock lock(guard_);
    waiter_ = waiter;
    turn_ = Turn::waiting;
  }
  struct Resume {
    std::shared_ptr<CoAttempt> to;
    void operator()(Result<Lock> result) const { to->finish(std::move(result)); }
  };
  auto attempt = mutex_->client().acquire_async(mutex_->name(), options_,
                                                std::make_unique<Handler<Resume>>(Resume{self}));
  bool unwanted = false;
  {
    const MutexLock lock(guard_);
    if (turn_ == Turn::waiting) attempt_ = attempt;
    unwanted = turn_ == Turn::destroyed;
  }
  if (unwanted && attempt) mutex_->client().cancel(attempt);
}

void CoAttempt::finish(Result<Lock> result) {
  std::optional<Result<Lock>> unwanted;  // a lock that came too late is released at the end
  std::coroutine_handle<> waiter;
  {
    const MutexLock lock(guard_);
    attempt_.reset();
    if (turn_ == Turn::waiting) {
      turn_ = Turn::resuming;
      resumer_ = std::this_thread::get_id();
      waiter = std::exchange(waiter_, nullptr);
      result_.emplace(std::move(result));
    } else {
      unwanted.emplace(std::move(result));
    }
  }
  if (waiter) waiter.resume();
}

Lock CoAttempt::take() {
  std::optional<Result<Lock>> result;
  {
    const MutexLock lock(guard_);
    turn_ = Turn::resumed;
    result = std::exchange(result_, std::nullopt);
  }
  return std::move(*result).value();
}

void CoAttempt::abandon() noexcept {
  std::shared_ptr<Attempt> attempt;
  std::optional<Result<Lock>> untaken;  // released at the end
  {
    const MutexLock lock(guard_);
    if (turn_ == Turn::resuming && resumer_ == std::this_thread::get_id()) {
      turn_ = Turn::resumed;
      untaken.swap(result_);
      return;
    }
    if (turn_ == Turn::resuming) {
      // Not through the log: the program ends before the log's thread writes the line.
      std::fprintf(stderr,
                   "baton: co_acquire of \"%s\": the coroutine was destroyed while another thread "
                   "was resuming it. Destroy a waiting coroutine only on the client's executor, or "
                   "request stop on AcquireOptions::stop and let it end\n",
                   mutex_->name().text().c_str());
      std::terminate();
    }
    if (turn_ != Turn::waiting) return;
    turn_ = Turn::destroyed;
    waiter_ = nullptr;
    attempt = std::exchange(attempt_, nullptr);
  }
  mutex_->client().coroutine_destroyed(mutex_->name());
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
