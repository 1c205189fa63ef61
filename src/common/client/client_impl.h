// ClientImpl: implements Client. It owns a backend, an engine on the backend's loop, and the
// threads that run users' code. It passes blocking and asynchronous calls to the strand.
#pragma once

#include <baton/client.h>

#include "common/client/async.h"
#include "common/client/engine.h"
#include "common/base/log.h"
#include "common/base/mutex.h"
#include "common/client/loss_thread.h"
#include "common/client/metrics_queue.h"
#include "common/seam/session.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace baton::internal {

// Checks the options and fills in defaults. Does no I/O. Error(invalid_argument) if they are wrong.
// The caller sets the log.
Result<BackendOptions> check_options(const ClientOptions& options);

// The error with which an acquire with these options ends at once; nullopt: the acquire is allowed.
std::optional<Error> refused_call(const LockName& name, const AcquireOptions& options);

class ClientImpl final : public HoldKeeper,
                         public EngineHost,
                         public TimeListener,
                         public std::enable_shared_from_this<ClientImpl> {
 public:
  // Connects, within the connect timeout.
  static Result<std::shared_ptr<ClientImpl>> open(std::unique_ptr<Backend> backend,
                                                  ClientOptions options,
                                                  std::shared_ptr<LogQueue> log,
                                                  std::uint64_t token_base = 0);
  ClientImpl(std::unique_ptr<Backend> backend, ClientOptions options, std::shared_ptr<LogQueue> log,
             std::uint64_t token_base);
  ~ClientImpl() override;

  // handle-style
  Result<Lock> acquire(const LockName& name, const AcquireOptions& options, bool may_deadlock);
  std::shared_ptr<Attempt> acquire_async(const LockName& name, const AcquireOptions& options,
                                         std::unique_ptr<HandlerBase> handler);
  void cancel(const std::shared_ptr<Attempt>& attempt) noexcept;
  // Called when a coroutine that waits for this lock is destroyed on this thread. Logs a warning if
  // another thread could have resumed it at the same time.
  void coroutine_destroyed(const LockName& name) noexcept;

  // std-style: the hold of the calling thread
  bool lock_thread(const LockName& name, std::optional<std::chrono::milliseconds> timeout);
  void unlock_thread(const LockName& name) noexcept;
  std::shared_ptr<Hold> thread_hold(const LockName& name) const;  // null: none

  // Runs the question on the strand and waits for its answer. Error(timeout) if there is no answer
  // within the timeout. brief: the question is short, so a calling thread may run it.
  template <class T, class F>
  Result<T> ask(const std::string& what, std::chrono::milliseconds timeout, F&& question,
                bool brief = true);

  SessionInfo info();
  std::chrono::milliseconds connect_timeout() const noexcept { return options_.connect_timeout; }
  std::uint64_t token_base() const noexcept { return token_base_; }
  const Clock& clock() const noexcept { return loop_.clock(); }
  bool forked() const noexcept;
  bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }
  Error gone_error(const std::string& what) const;
  std::string where() const { return backend_->where(); }
  void close() noexcept { close_within(std::chrono::seconds(3)); }
  // Like close(), but waits at most `goodbye` for the end of the session, and never more than 3 s.
  void close_within(std::chrono::milliseconds goodbye) noexcept;

  void withdraw_hold(std::shared_ptr<Hold> hold) noexcept override;
  void release_and_wait(std::shared_ptr<Hold> hold, std::chrono::milliseconds timeout) override;
  void verify_and_wait(std::shared_ptr<Hold> hold, std::chrono::milliseconds timeout) override;

 private:
  struct ThreadHold {
    Lock lock;
    std::shared_ptr<Hold> hold;
    std::uint64_t count = 0;
  };
  using ThreadKey = std::pair<std::string, std::uint64_t>;

  std::shared_ptr<Attempt> make_attempt(const LockName& name, const AcquireOptions& options,
                                        std::shared_ptr<AttemptSink> sink);
  void start(const std::shared_ptr<Attempt>& attempt);
  // Starts a timer that logs a warning about granted locks whose handlers do not start.
  void watch_pending_grants();

  std::weak_ptr<HoldKeeper> keeper() override { return weak_from_this(); }
  void hold_granted(const std::shared_ptr<Hold>& hold) override { loss_.watch(hold); }
  void hold_lost(const std::shared_ptr<Hold>& hold) override { loss_.announce(hold); }
  void on_hold_closed(const std::shared_ptr<Hold>& hold) override { loss_.unwatch(hold); }
  void metric(const MetricEvent& event, const LockName* lock) override;
  // On virtual time: announces losses that are due before the clock moves further.
  Time next_due() override { return kNever; }
  void time_moved() override { loss_.settle(std::chrono::milliseconds(500)); }

  const std::uint64_t generation_;
  const ClientOptions options_;
  const std::uint64_t token_base_;
  const std::shared_ptr<LogQueue> log_queue_;
  const LogFunction log_;
  std::unique_ptr<Backend> backend_;
  Loop& loop_;
  std::shared_ptr<UserCode> user_code_;
  const std::shared_ptr<MetricsQueue> metrics_;
  LossThread loss_;
  Engine engine_;
  TimerId pending_timer_ = TimerId::none;  // on the strand
  Time pending_quiet_until_{};             // on the strand
  std::atomic<bool> closed_{false};
  std::atomic<bool> warned_of_destruction_{false};
  struct Closing {  // a second close() waits for the first; may outlive the client
    Mutex mutex;
    Condition changed;
    bool done BATON_GUARDED_BY(mutex) = false;
  };
  const std::shared_ptr<Closing> closing_ = std::make_shared<Closing>();

  mutable Mutex threads_mutex_;
  std::map<ThreadKey, ThreadHold> threads_ BATON_GUARDED_BY(threads_mutex_);
};

// Mailbox: waits for an answer from the strand. Several threads may put an answer; the first
// counts.
template <class T>
class Mailbox {
 public:
  bool put(Result<T> value) noexcept {
    const MutexLock guard(mutex_);
    if (value_ || abandoned_) return false;
    if (value) {
      value_.emplace(std::move(value));
    } else {
      // Copy the text: copies of an exception share their text, with a reference count that the
      // thread sanitizer cannot see.
      value_.emplace(Error(value.error().errc(), std::string(value.error().what())));
    }
    ready_.notify_all();
    return true;
  }
  // Returns nullopt if there is no answer at `until`. Later answers are refused.
  std::optional<Result<T>> wait_until(Time until, const Clock& clock) {
    MutexLock guard(mutex_);
    if (until == kNever || !clock.real()) {
      while (!value_) ready_.wait(guard);
    } else {
      while (!value_) {
        const Time now = clock.now();
        if (now >= until) break;
        // In steps, because the condition's clock stops during suspend.
        const auto step = std::min<Nanos>(until - now, std::chrono::seconds(1));
        ready_.wait_until(guard, Condition::Clock::now() + step);
      }
    }
    if (!value_) abandoned_ = true;
    return std::exchange(value_, std::nullopt);
  }

 private:
  Mutex mutex_;
  Condition ready_;
  std::optional<Result<T>> value_ BATON_GUARDED_BY(mutex_);
  bool abandoned_ BATON_GUARDED_BY(mutex_) = false;
};

template <class T, class F>
Result<T> ClientImpl::ask(const std::string& what, std::chrono::milliseconds timeout, F&& question,
                          bool brief) {
  if (forked() || closed()) return gone_error(what);
  // Answers in its destructor if the question is dropped without an answer (the loop has stopped,
  // or the session has ended). Otherwise the caller would wait until its timeout.
  struct Promise {
    Promise(const ClientImpl* c, std::shared_ptr<Mailbox<T>> b, std::string w)
        : client(c), box(std::move(b)), what(std::move(w)) {}
    Promise(const Promise&) = delete;
    Promise& operator=(const Promise&) = delete;
    const ClientImpl* client;  // the caller of ask() keeps it alive
    std::shared_ptr<Mailbox<T>> box;
    std::string what;
    ~Promise() {
      box->put(client->closed() ? client->gone_error(what)
                                : Error(Errc::session_expired,
                                        what + ": the session ended before the answer came"));
    }
  };
  auto box = std::make_shared<Mailbox<T>>();
  auto promise = std::make_shared<Promise>(this, box, what);
  const Time until = saturating_add_ms(loop_.now(), timeout);
  const auto late = [this, what] {
    return Error(Errc::timeout, what + " on " + backend_->where() + ": no answer in time");
  };
  Task step([this, box, promise, until, late, question = std::forward<F>(question)]() mutable {
    const TimerId timer = loop_.at(until, [box, late] { box->put(late()); });
    question(engine_, Answer<T>([this, promise, timer](Result<T> value) {
               loop_.cancel(timer);
               promise->box->put(std::move(value));
             }));
  });
  if (brief) {
    loop_.run(std::move(step));
  } else {
    loop_.post(std::move(step));
  }
  promise.reset();
  auto value = box->wait_until(saturating_add(until, std::chrono::milliseconds(20)), loop_.clock());
  return value ? std::move(*value) : Result<T>(late());
}

}  // namespace baton::internal
