// Outcomes that go to handlers and coroutines of users.
#pragma once

#include <baton/mutex.h>

#include "common/callback_thread.h"
#include "common/engine.h"
#include "common/log.h"

#include <chrono>
#include <coroutine>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

namespace baton::internal {

// Runs users' code: on the program's executor, or on a thread of the client. Outlives the client as
// long as handlers are under way.
class UserCode {
 public:
  using Executor = std::function<void(std::function<void()>)>;
  UserCode(Executor executor, LogFunction log);
  void post(Task task);         // through the executor, if there is one
  void post_direct(Task task);  // on the client's own thread
  void stop(std::chrono::milliseconds wait) noexcept { thread_.stop(wait); }
  bool on_thread() const noexcept { return thread_.on_thread(); }

 private:
  const Executor executor_;
  const LogFunction log_;
  CallbackThread thread_;
};

// Hands the outcome to a handler, exactly once.
class AsyncSink final : public AttemptSink {
 public:
  AsyncSink(std::unique_ptr<HandlerBase> handler, std::shared_ptr<UserCode> user_code) noexcept
      : handler_(std::move(handler)), user_code_(std::move(user_code)) {}
  bool offer(Result<std::shared_ptr<Hold>> outcome) noexcept override;
  // In a fork of the process there is no thread to call it on: here and now.
  void offer_here(const Error& error);

 private:
  std::unique_ptr<HandlerBase> handler_;
  std::shared_ptr<UserCode> user_code_;
};

class MutexImpl;

// Behind AcquireAwaitable.
class CoAttempt : public std::enable_shared_from_this<CoAttempt> {
 public:
  CoAttempt(std::shared_ptr<MutexImpl> mutex, AcquireOptions options)
      : mutex_(std::move(mutex)), options_(std::move(options)) {}
  void start(std::coroutine_handle<> waiter);
  Lock take();
  void abandon() noexcept;  // the coroutine is being destroyed

 private:
  void finish(Result<Lock> result);

  std::shared_ptr<MutexImpl> mutex_;
  AcquireOptions options_;
  std::mutex guard_;
  std::coroutine_handle<> waiter_;  // null: nobody to resume
  std::shared_ptr<Attempt> attempt_;
  std::optional<Result<Lock>> result_;
  bool finished_ = false;
};

}  // namespace baton::internal
