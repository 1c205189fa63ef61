// ClientImpl: what stands behind Client: a backend, an engine on its loop, and the threads of
// users' code. Bridges blocking and asynchronous calls to the strand.
#pragma once

#include <baton/client.h>

#include "common/client/async.h"
#include "common/client/engine.h"
#include "common/base/log.h"
#include "common/client/loss_thread.h"
#include "common/client/metrics_queue.h"
#include "common/seam/session.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace baton::internal {

// The caller's options, checked, with defaults filled in. Error(invalid_argument) before any I/O.
// The log is left to the caller.
Result<BackendOptions> check_options(const ClientOptions& options);

// An acquire with these options ends at once with this error; none: it may go on.
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
  // A coroutine that waited for this lock was destroyed on this thread: warns if that was risky.
  void coroutine_destroyed(const LockName& name) noexcept;

  // std-style: the hold of the calling thread
  bool lock_thread(const LockName& name, std::optional<std::chrono::milliseconds> timeout);
  void unlock_thread(const LockName& name) noexcept;
  std::shared_ptr<Hold> thread_hold(const LockName& name) const;  // null: none

  // Asks the session on the strand and waits. Error(timeout) when it takes too long. brief: the
  // question may be asked on this thread, or on that of another caller.
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
  // The same; waits at most this long for the session's goodbye.
  void close_within(std::chrono::milliseconds goodbye) noexcept;

  void hold_released(std::shared_ptr<Hold> hold) noexcept override;
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
  // Warns of granted locks whose handlers do not start.
  void watch_pending_grants();

  std::weak_ptr<HoldKeeper> keeper() override { return weak_from_this(); }
  void hold_granted(const std::shared_ptr<Hold>& hold) override { loss_.watch(hold); }
  void hold_lost(const std::shared_ptr<Hold>& hold) override { loss_.announce(hold); }
  void hold_released(const std::shared_ptr<Hold>& hold) override { loss_.unwatch(hold); }
  void metric(const MetricEvent& event, const LockName* lock) override;
  // On virtual time: losses that are due are announced before the clock moves on.
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
  struct Closing {  // outlives us: a second close() waits for the first
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
  };
  const std::shared_ptr<Closing> closing_ = std::make_shared<Closing>();

  mutable std::mutex threads_mutex_;
  std::map<ThreadKey, ThreadHold> threads_;
};

// Waits for one answer from the strand; several threads may hold it, the first answer counts.
template <class T>
class Mailbox {
 public:
  bool put(Result<T> value) noexcept {
    const std::lock_guard guard(mutex_);
    if (value_ || abandoned_) return false;
    if (value) {
      value_.emplace(std::move(value));
    } else {
      // A text of its own: copies of an exception share theirs, and count themselves where thread
      // sanitizers cannot see it.
      value_.emplace(Error(value.error().errc(), std::string(value.error().what())));
    }
    ready_.notify_all();
    return true;
  }
  // Empty after `until`: whatever comes later is refused.
  std::optional<Result<T>> wait_until(Time until, const Clock& clock) {
    std::unique_lock guard(mutex_);
    if (until == kNever || !clock.real()) {
      ready_.wait(guard, [this] { return value_.has_value(); });
    } else {
      while (!value_) {
        const Time now = clock.now();
        if (now >= until) break;
        // In steps: steady_clock stands still during suspend, the boot clock does not.
        const auto step = std::min<Nanos>(until - now, std::chrono::seconds(1));
        ready_.wait_for(guard, step);
      }
    }
    if (!value_) abandoned_ = true;
    return std::exchange(value_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::optional<Result<T>> value_;
  bool abandoned_ = false;
};

template <class T, class F>
Result<T> ClientImpl::ask(const std::string& what, std::chrono::milliseconds timeout, F&& question,
                          bool brief) {
  if (forked() || closed()) return gone_error(what);
  // Dropped without an answer (the loop stopped): nobody waits in vain.
  struct Promise {
    Promise(const ClientImpl* c, std::shared_ptr<Mailbox<T>> b, std::string w)
        : client(c), box(std::move(b)), what(std::move(w)) {}
    Promise(const Promise&) = delete;
    Promise& operator=(const Promise&) = delete;
    const ClientImpl* client;  // whoever asks keeps it
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
