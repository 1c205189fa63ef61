#include "common/client/client_impl.h"

#include "common/client/async.h"
#include "common/base/fork_guard.h"
#include "common/client/handler_scope.h"
#include "common/seam/lock_name.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>
#include <utility>

namespace baton::internal {

namespace {

using std::chrono::milliseconds;

// A number for this thread that is never reused in this process. pthread_self() and gettid() are
// reused.
std::uint64_t thread_serial() noexcept {
  static std::atomic<std::uint64_t> next{1};
  thread_local const std::uint64_t serial = next.fetch_add(1, std::memory_order_relaxed);
  return serial;
}

class BlockingSink final : public AttemptSink {
 public:
  bool offer(Result<std::shared_ptr<Hold>> outcome) noexcept override {
    return box_.put(std::move(outcome));
  }
  std::optional<Result<std::shared_ptr<Hold>>> wait_until(Time until, const Clock& clock) {
    return box_.wait_until(until, clock);
  }

 private:
  Mailbox<std::shared_ptr<Hold>> box_;
};

}  // namespace

Result<std::shared_ptr<ClientImpl>> ClientImpl::open(std::unique_ptr<Backend> backend,
                                                     ClientOptions options,
                                                     std::shared_ptr<LogQueue> log,
                                                     std::uint64_t token_base) {
  const auto timeout = options.connect_timeout;
  // A forked child must leak the client: mutexes may be locked, and the threads do not exist there.
  std::shared_ptr<ClientImpl> client(
      new ClientImpl(std::move(backend), std::move(options), std::move(log), token_base),
      [](ClientImpl* impl) {
        if (!impl->forked()) delete impl;  // NOLINT
      });
  const Time until = saturating_add_ms(BootClock::now(), timeout);
  const auto opened = client->ask<Done>(
      "connect", timeout, [](Engine& engine, Answer<Done> done) { engine.open(std::move(done)); });
  if (!opened) {
    std::string text = opened.error().what();
    if (opened.error().errc() == Errc::timeout) {
      const auto trouble = client->ask<std::string>(
          "connect", milliseconds(100),
          [](Engine& engine, Answer<std::string> answer) { answer(engine.trouble()); });
      if (trouble && !trouble->empty()) text += ": " + *trouble;
    }
    // A session that was being checked is closed if there is time left. It has no entries, and ends
    // with its timeout at the latest.
    const auto left = std::chrono::duration_cast<milliseconds>(until - BootClock::now());
    client->close_within(std::max(left, milliseconds(30)));
    if (opened.error().errc() != Errc::timeout) return opened.error();
    return Error(Errc::connection_failed, text);
  }
  return client;
}

ClientImpl::ClientImpl(std::unique_ptr<Backend> backend, ClientOptions options,
                       std::shared_ptr<LogQueue> log, std::uint64_t token_base)
    : generation_(fork_generation()),
      options_(std::move(options)),
      token_base_(token_base),
      log_queue_(std::move(log)),
      log_(log_to(log_queue_)),
      backend_(std::move(backend)),
      loop_(backend_->loop()),
      user_code_(std::make_shared<UserCode>(options_.executor, log_)),
      metrics_(std::make_shared<MetricsQueue>(options_.metrics, log_)),
      loss_(
          loop_.clock(), log_,
          [this](std::shared_ptr<Hold> hold) {
            // The loss thread has declared the loss; the loop withdraws the ticket.
            loop_.post([this, hold = std::move(hold)] { engine_.retire_hold(hold, nullptr); });
          },
          loop_.may_oversleep() ? std::function<void()>([this] { loop_.nudge(); }) : nullptr),
      engine_(*backend_, *this, log_, std::random_device{}(), token_base_) {
  loop_.clock().add_listener(this);
}

ClientImpl::~ClientImpl() { close(); }

bool ClientImpl::forked() const noexcept { return generation_ != fork_generation(); }

Error ClientImpl::gone_error(const std::string& what) const {
  if (forked()) {
    return {Errc::forked, what +
                              ": this process is a fork of the process that opened the client; "
                              "open a new client in this process"};
  }
  return {Errc::closed, what + " on " + backend_->where() + ": the client is closed"};
}

void ClientImpl::metric(const MetricEvent& event, const LockName* lock) {
  if (!options_.metrics) return;
  metrics_->post(*user_code_, event, lock ? lock->text() : std::string());
}

// ---- handle-style

std::shared_ptr<Attempt> ClientImpl::make_attempt(const LockName& name,
                                                  const AcquireOptions& options,
                                                  std::shared_ptr<AttemptSink> sink) {
  const bool once = options.timeout && options.timeout->count() == 0;
  auto attempt = std::make_shared<Attempt>(name, once, std::move(sink));
  attempt->started = loop_.now();
  if (once) {
    attempt->deadline = saturating_add_ms(attempt->started, options_.connect_timeout);
    attempt->late = Errc::connection_failed;
  } else if (options.timeout) {
    attempt->deadline = saturating_add_ms(attempt->started, *options.timeout);
  }
  if (options.stop.stop_possible()) {
    attempt->on_stop.emplace(options.stop,
                             [client = weak_from_this(), weak = std::weak_ptr<Attempt>(attempt)] {
                               const auto self = client.lock();
                               const auto cancelled = weak.lock();
                               // cancel() posts. It must not run give_up() here: give_up() destroys
                               // this stop callback.
                               if (self && cancelled) self->cancel(cancelled);
                             });
  }
  return attempt;
}

void ClientImpl::start(const std::shared_ptr<Attempt>& attempt) {
  // A loop that has stopped drops the task. The destructor then answers the caller.
  struct Starter {
    Starter(Engine* e, std::shared_ptr<Attempt> a) : engine(e), attempt(std::move(a)) {}
    Starter(Starter&&) noexcept = default;
    Starter& operator=(Starter&&) = delete;
    ~Starter() {
      if (attempt == nullptr) return;
      if (const auto sink = std::exchange(attempt->sink, nullptr)) {
        sink->offer(
            Error(Errc::closed, "acquire \"" + attempt->name.text() + "\": the client was closed"));
      }
    }
    void operator()() { engine->start(std::exchange(attempt, nullptr)); }
    Engine* engine;
    std::shared_ptr<Attempt> attempt;
  };
  loop_.run(Starter(&engine_, attempt));
}

Result<Lock> ClientImpl::acquire(const LockName& name, const AcquireOptions& options,
                                 bool may_deadlock) {
  if (auto refused = refused_call(name, options)) return *std::move(refused);
  if (forked() || closed()) return gone_error("acquire \"" + name.text() + "\"");
  // milliseconds::max() means no limit, too.
  const bool untimed = !options.timeout || *options.timeout == milliseconds::max();
  if (untimed && user_code_->on_thread()) {
    return Error(Errc::would_deadlock,
                 "acquire \"" + name.text() + "\" on " + backend_->where() +
                     ": refused on the client's callback thread, because handlers that hold locks "
                     "may be queued behind this one; use acquire_async() or co_acquire(), or set a "
                     "timeout");
  }
  if (untimed && !may_deadlock) {
    const auto mine = thread_hold(name);
    if (mine && mine->valid()) {
      return Error(Errc::would_deadlock, "acquire \"" + name.text() +
                                             "\": this thread holds it by lock(), so acquire() "
                                             "without a timeout would wait without end; set a "
                                             "timeout, or call unlock() first");
    }
  }
  auto sink = std::make_shared<BlockingSink>();
  const auto attempt = make_attempt(name, options, sink);
  start(attempt);
  // Normally the timer of the loop ends the attempt. This wait ends 20 ms later, in case the loop
  // is busy.
  auto outcome =
      sink->wait_until(saturating_add(attempt->deadline, milliseconds(20)), loop_.clock());
  if (!outcome) {
    loop_.post([this, attempt] { engine_.give_up(attempt, attempt->late); });
    return Error(attempt->late, "acquire \"" + name.text() + "\" on " + backend_->where() +
                                    ": timed out, and the client is busy; the entry of this "
                                    "attempt, if there is one, is removed later");
  }
  if (!*outcome) return outcome->error();
  return LockMaker::make(std::move(**outcome));
}

// ---- std-style

std::shared_ptr<Hold> ClientImpl::thread_hold(const LockName& name) const {
  const MutexLock guard(threads_mutex_);
  const auto mine = threads_.find(ThreadKey(name.text(), thread_serial()));
  return mine == threads_.end() ? nullptr : mine->second.hold;
}

bool ClientImpl::lock_thread(const LockName& name, std::optional<milliseconds> timeout) {
  if (forked()) throw gone_error("lock \"" + name.text() + "\"");
  if (HandlerScope::inside()) {
    throw Error(Errc::would_deadlock,
                "lock \"" + name.text() +
                    "\": refused inside a handler or a resumed coroutine, because a hold by lock() "
                    "belongs to the thread, and handlers share threads; use acquire_for() or "
                    "co_acquire(), whose Lock belongs to the caller");
  }
  const ThreadKey key(name.text(), thread_serial());
  {
    const MutexLock guard(threads_mutex_);
    if (const auto mine = threads_.find(key); mine != threads_.end()) {
      if (!mine->second.hold->valid()) {
        throw Error(Errc::lock_lost,
                    "lock \"" + name.text() + "\": this thread's hold with token " +
                        std::to_string(mine->second.hold->token()) + " was lost (" +
                        mine->second.hold->lost_reason().message() + "); unlock it first");
      }
      ++mine->second.count;
      return true;
    }
  }
  auto lock = acquire(name, {timeout, {}}, true);
  if (!lock) {
    if (lock.error().errc() == Errc::timeout && timeout) return false;
    throw lock.error();
  }
  const MutexLock guard(threads_mutex_);
  auto hold = LockMaker::hold(*lock);
  threads_.emplace(key, ThreadHold{std::move(lock).value(), std::move(hold), 1});
  return true;
}

void ClientImpl::unlock_thread(const LockName& name) noexcept {
  if (forked()) return;  // the parent has the hold; the mutex may be locked permanently
  Lock released;
  bool held = false;
  {
    const MutexLock guard(threads_mutex_);
    const auto mine = threads_.find(ThreadKey(name.text(), thread_serial()));
    if (mine != threads_.end()) {
      held = true;
      if (--mine->second.count == 0) {
        released = std::move(mine->second.lock);
        threads_.erase(mine);
      }
    }
  }
  if (held) return;
  // Through the queue: the program's log function must not run inside unlock().
  log_queue_->write(LogLevel::error, "unlock \"" + name.text() +
                                         "\": this thread does not hold it; call unlock() once for "
                                         "each lock(), on the same thread");
}

// ---- requests of Lock objects

void ClientImpl::withdraw_hold(std::shared_ptr<Hold> hold) noexcept {
  if (forked() || closed()) return;
  loop_.run([this, hold = std::move(hold)] { engine_.retire_hold(hold, nullptr); });
}

void ClientImpl::release_and_wait(std::shared_ptr<Hold> hold, milliseconds timeout) {
  const std::string what = "release \"" + hold->name().text() + "\"";
  auto done = ask<Done>(what, timeout, [hold](Engine& engine, Answer<Done> answer) {
    engine.retire_hold(hold, std::move(answer));
  });
  if (!done) throw done.error();
}

void ClientImpl::verify_and_wait(std::shared_ptr<Hold> hold, milliseconds timeout) {
  const std::string what = "verify \"" + hold->name().text() + "\"";
  const Time until = saturating_add_ms(loop_.now(), timeout);
  auto ours = ask<bool>(what, timeout, [hold, until](Engine& engine, Answer<bool> answer) {
    if (engine.session() != nullptr) engine.session()->wanted_until(until);
    engine.verify(hold, std::move(answer));
  });
  if (!ours && hold->valid()) throw ours.error();
  if (!ours || !*ours || !hold->valid()) {
    throw Error(Errc::lock_lost, what + " on " + backend_->where() + ": the lock was lost (" +
                                     hold->lost_reason().message() + ")");
  }
}

SessionInfo ClientImpl::info() {
  auto info =
      ask<SessionInfo>("session", milliseconds(1000),
                       [](Engine& engine, Answer<SessionInfo> answer) { answer(engine.info()); });
  if (info) return std::move(info).value();
  const Errc why = info.error().errc();
  if (why == Errc::closed || why == Errc::forked) return {};  // its state is closed
  if (why != Errc::timeout) throw info.error();
  throw Error(Errc::timeout, "session of " + backend_->where() +
                                 ": the client is busy and gave no answer within 1 s; ask again");
}

void ClientImpl::close_within(milliseconds goodbye) noexcept {
  if (forked()) return;
  const auto closing = closing_;
  if (closed_.exchange(true, std::memory_order_acq_rel)) {
    // The first close() may still run, and this caller may own the last reference to the client, so
    // wait for it. But not on threads of the client: the first close() may wait for them.
    if (user_code_->on_thread() || loss_.on_thread()) return;
    const auto until = Condition::Clock::now() + milliseconds(4900);
    MutexLock guard(closing->mutex);
    while (!closing->done && closing->changed.wait_until(guard, until)) {
    }
    return;
  }
  const auto self = weak_from_this().lock();  // null in the destructor
  const Time until = BootClock::now() + milliseconds(4500);
  const auto left = [until](milliseconds most) {
    const auto rest = std::chrono::duration_cast<milliseconds>(until - BootClock::now());
    return std::clamp(rest, milliseconds(0), most);
  };
  loop_.clock().remove_listener(this);
  auto bye = std::make_shared<Mailbox<Done>>();
  // On the loop's thread: with thousands of waiters it takes long, and other calls may still run.
  loop_.post(
      [this, bye] { engine_.close([bye](Result<Done> done) { bye->put(std::move(done)); }); });
  // Wait in real time also on a virtual clock: the test may not move it during close().
  const auto patience =
      std::clamp(goodbye, milliseconds(0), milliseconds(loop_.clock().real() ? 3000 : 200));
  bye->wait_until(BootClock::now() + patience, real_clock());
  backend_->stop();
  engine_.abandon();  // ends attempts and holds that the loop did not reach
  const std::size_t running = user_code_->stop(left(milliseconds(4500)));
  metrics_->close();
  if (running > 0 && !user_code_->on_thread()) {
    log_(LogLevel::warning,
         "close: a handler has not returned yet; it continues, and " + std::to_string(running - 1) +
             " queued calls of handlers run after it, without a valid lock. Keep the objects that "
             "they use alive, and make handlers return within 5 s");
  }
  loss_.stop(left(milliseconds(4500)));
  // Flush also when no time is left: the warnings above are written last, and the program may end
  // right after close().
  log_queue_->flush(std::max(left(milliseconds(1000)), milliseconds(200)));
  const MutexLock guard(closing->mutex);
  closing->done = true;
  closing->changed.notify_all();
}

}  // namespace baton::internal
