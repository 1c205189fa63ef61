// Delivers the outcomes of attempts to handlers and coroutines of users.
#pragma once

#include <baton/mutex.h>

#include "common/client/callback_thread.h"
#include "common/client/engine.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/client/pending_grants.h"

#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

namespace baton::internal {

// UserCode: runs users' code on the program's executor, or on a thread of the client. It outlives
// the client as long as handlers are under way.
class UserCode {
 public:
  using Executor = std::function<void(std::function<void()>)>;
  UserCode(Executor executor, LogFunction log);
  void post(Task task);         // through the executor, if the program has set one
  void post_direct(Task task);  // on the client's own thread
  // Like post(), for the outcome of a call that was made after close(). stop() does not wait for
  // it. After 100 calls each task is delayed by 1 s: a handler that calls again on every error
  // would otherwise keep a processor busy.
  void post_after_close(Task task);
  // Returns how many calls of the program's code have not ended within `wait`.
  std::size_t stop(std::chrono::milliseconds wait) noexcept { return thread_.stop(wait); }
  bool on_thread() const noexcept { return thread_.on_thread(); }
  PendingGrants& grants() noexcept { return *grants_; }
  bool has_executor() const noexcept { return executor_ != nullptr; }  // of the program

 private:
  Task through_executor(Task task);

  const Executor executor_;
  const LogFunction log_;
  const std::shared_ptr<PendingGrants> grants_ = std::make_shared<PendingGrants>();
  std::atomic<int> after_close_{0};  // calls made after close()
  CallbackThread thread_;
};

// AsyncSink: passes the outcome to a handler, exactly once.
class AsyncSink final : public AttemptSink {
 public:
  // granted: called on the strand after a granted lock was queued for the handler.
  AsyncSink(std::unique_ptr<HandlerBase> handler, std::shared_ptr<UserCode> user_code,
            std::function<void()> granted) noexcept
      : handler_(std::move(handler)),
        user_code_(std::move(user_code)),
        granted_(std::move(granted)) {}
  bool offer(Result<std::shared_ptr<Hold>> outcome) noexcept override;
  // Like offer(), for a closed client: through UserCode::post_after_close().
  void offer_after_close(const Error& error);
  // Calls the handler at once, on this thread: a forked child has no thread of the client.
  void offer_here(const Error& error);

 private:
  std::unique_ptr<HandlerBase> handler_;
  std::shared_ptr<UserCode> user_code_;
  std::function<void()> granted_;
};

class MutexImpl;

// CoAttempt: implements AcquireAwaitable. Only one of two threads may touch the coroutine's frame:
// the thread that resumes it, or the thread that destroys it. `turn_` decides, under `guard_`:
//   waiting -> resuming   finish() has won and calls resume(); only it may touch the frame
//   waiting -> destroyed  abandon() has won; finish() never touches the frame
//   resuming -> resumed   the resumed coroutine has taken the result
// abandon() in `resuming` on another thread means that destroy() and resume() overlap. (On the
// resuming thread it means that an awaitable that wraps AcquireAwaitable has thrown before it took
// the result.) Neither call can be stopped any more: destroy() has changed the frame before a
// destructor of baton runs, and resume() may already read the frame. So abandon() ends the program
// before the frame is freed.
class CoAttempt : public std::enable_shared_from_this<CoAttempt> {
 public:
  CoAttempt(std::shared_ptr<MutexImpl> mutex, const AcquireOptions& options)
      : mutex_(std::move(mutex)), options_(options) {}
  void start(std::coroutine_handle<> waiter);
  Lock take();
  void abandon() noexcept;  // the awaitable is being destroyed, perhaps with its coroutine

 private:
  enum class Turn { idle, waiting, resuming, resumed, destroyed };
  void finish(Result<Lock> result);

  std::shared_ptr<MutexImpl> mutex_;
  AcquireOptions options_;
  Mutex guard_;
  Turn turn_ BATON_GUARDED_BY(guard_) = Turn::idle;
  std::thread::id resumer_ BATON_GUARDED_BY(guard_);  // set in `resuming`
  std::coroutine_handle<> waiter_ BATON_GUARDED_BY(guard_);
  std::shared_ptr<Attempt> attempt_ BATON_GUARDED_BY(guard_);  // null: not started, or settled
  std::optional<Result<Lock>> result_ BATON_GUARDED_BY(guard_);
};

}  // namespace baton::internal
