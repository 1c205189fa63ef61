#include "common/client/loss_thread.h"

#include "common/client/loss_duties.h"
#include "common/base/mutex.h"
#include "common/base/signal_shield.h"
#include "common/base/unique_fd.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

namespace baton::internal {

namespace {
constexpr int kMostAnnouncements = 256;  // at the same time; stated in <baton/lock.h>
constexpr std::chrono::milliseconds kRetrySpawn{100};
constexpr std::chrono::seconds kLogEvery{10};
constexpr std::chrono::milliseconds kNudgeEvery{500};

// Set on the threads of every LossThread: stop() on such a thread must not wait for that thread.
thread_local const void* current_loss_thread = nullptr;

UniqueFd loss_fd(int fd, const char* what) {
  if (fd < 0) throw std::system_error(errno, std::generic_category(), what);
  return UniqueFd(fd);
}
}  // namespace

struct LossThread::State : std::enable_shared_from_this<LossThread::State> {
  State(const Clock& c, LogFunction l, std::function<void(std::shared_ptr<Hold>)> f,
        std::function<void()> n)
      : log(std::move(l)),
        on_lost(std::move(f)),
        nudge(std::move(n)),
        real(c.real()),
        wake(loss_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")),
        // Not a condition variable: it sleeps on a clock that stops during suspend.
        timer(loss_fd(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK),
                      "timerfd_create")) {}

  bool stopping() const noexcept BATON_REQUIRES(mutex) { return phase == LossPhase::stopping; }

  void ring() const noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(wake.get(), &one, sizeof one);
  }

  // Every loss that is due is announced.
  bool settled() const noexcept BATON_REQUIRES(mutex) {
    return queue.empty() && declared.empty() && duties.of(LossDuty::announcing) == 0 &&
           duties.of(LossDuty::telling) == 0;
  }

  // A thread changes its duty.
  void change(LossDuty from, LossDuty to) noexcept BATON_REQUIRES(mutex) {
    duties.change(phase, from, to);
  }

  // Starts a thread that waits.
  void spawn() BATON_REQUIRES(mutex) {
    const SignalShield shield;
    change(LossDuty::none, LossDuty::watching);
    try {
      std::thread([self = shared_from_this()] { self->loop(); }).detach();
    } catch (...) {
      change(LossDuty::watching, LossDuty::none);
      throw;
    }
  }

  // Declares holds lost that are due, and returns the next deadline.
  Time collect_due() BATON_REQUIRES(mutex) {
    Time next = kNever;
    for (auto it = watched.begin(); it != watched.end();) {
      const Errc due = (*it)->due_loss();
      if (due == Errc{} && (*it)->is_held()) {
        next = std::min(next, (*it)->lease().deadline());
        ++it;
        continue;
      }
      if (due != Errc{} && (*it)->become_lost(due)) {
        declared.push_back(*it);
        queue.push_back(*it);
      }
      it = watched.erase(it);
    }
    return next;
  }

  void wait_for_work(Time next) {
    if (real && next != kNever) {
      const auto ns = std::max<std::int64_t>(next.time_since_epoch().count(), 1);
      itimerspec spec{};
      spec.it_value.tv_sec = ns / 1'000'000'000;
      spec.it_value.tv_nsec = ns % 1'000'000'000;
      timerfd_settime(timer.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
    }
    std::array<pollfd, 2> fds{{{wake.get(), POLLIN, 0}, {timer.get(), POLLIN, 0}}};
    ::poll(fds.data(), fds.size(), -1);
    std::uint64_t count = 0;
    for (const auto& fd : fds) {
      if ((fd.revents & POLLIN) != 0) {
        // NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection): there is something to read
        [[maybe_unused]] const auto n = ::read(fd.fd, &count, sizeof count);
      }
    }
  }

  // Logs, at most every 10 s, that announcements have to wait.
  void log_limit(const std::string& why) BATON_REQUIRES(mutex) {
    const Time now = BootClock::now();
    if (now < quiet_until) return;
    quiet_until = now + kLogEvery;
    log(LogLevel::error,
        "cannot announce " + std::to_string(queue.size()) +
            " lost locks to stop callbacks of lost_token(): " + why + "; " +
            std::to_string(duties.of(LossDuty::announcing)) +
            " stop callbacks have not returned. valid() still returns the right answer; make the "
            "callbacks return");
  }

  // Whether this thread may run stop callbacks of the program. Meanwhile another thread must watch
  // deadlines, so it starts a thread if necessary.
  bool may_announce() BATON_REQUIRES(mutex) {
    if (duties.unblocked() > 1 || (stopping() && queue.size() == 1)) return true;
    if (duties.of(LossDuty::announcing) >= kMostAnnouncements) {
      log_limit("the limit is reached");
      return false;
    }
    try {
      spawn();
      return true;
    } catch (const std::exception& e) {
      log_limit(std::string("cannot start a thread: ") + e.what());
    }
    // No other thread will announce it. A late deadline is better than a loss that is not
    // announced.
    return duties.of(LossDuty::announcing) == 0;
  }

  // Calls on_lost and nudge. They are code of baton and short, and never wait for a stop callback.
  void call_ours(bool woken) BATON_REQUIRES(mutex) {
    const auto holds = std::exchange(declared, {});
    if (stopping() || (holds.empty() && !(woken && nudge))) return;
    change(LossDuty::watching, LossDuty::telling);  // stop() waits for its end
    mutex.unlock();
    for (const auto& hold : holds) on_lost(hold);
    if (woken && nudge) nudge();
    mutex.lock();
    change(LossDuty::telling, LossDuty::watching);
    changed.notify_all();
  }

  // Invariant: while not stopping, at least one thread is in here and not inside a stop callback of
  // the program. It declares losses, withdraws their tickets (on_lost) and nudges the loop, however
  // many stop callbacks block. A thread takes an announcement only if may_announce().
  void loop() {
    current_loss_thread = this;
    MutexLock guard(mutex);
    bool woken = false;
    for (;;) {
      const Time next = collect_due();
      if (!declared.empty() || woken) {
        call_ours(std::exchange(woken, false));
        continue;  // the mutex was released: check everything again
      }
      if (!queue.empty() && may_announce()) {
        announce_one();
        continue;
      }
      if (queue.empty()) {
        changed.notify_all();  // for settle()
        if (stopping()) break;
      }
      if (duties.unblocked() > 1) break;
      const Time again = queue.empty() ? kNever : BootClock::now() + kRetrySpawn;
      const Time nudging = nudge ? BootClock::now() + kNudgeEvery : kNever;
      guard.unlock();
      wait_for_work(std::min({next, again, nudging}));
      guard.lock();
      woken = true;
    }
    change(LossDuty::watching, LossDuty::none);
    changed.notify_all();
  }

  void announce_one() BATON_REQUIRES(mutex) {
    auto hold = std::move(queue.front());
    queue.pop_front();
    change(LossDuty::watching, LossDuty::announcing);
    mutex.unlock();
    hold->announce_loss();
    hold.reset();
    mutex.lock();
    change(LossDuty::announcing, LossDuty::watching);
  }

  LogFunction log;
  std::function<void(std::shared_ptr<Hold>)> on_lost;
  const std::function<void()> nudge;
  const bool real;  // not the clock itself: a thread that outlives the client must not touch it
  UniqueFd wake;
  UniqueFd timer;

  Mutex mutex;
  Condition changed;
  std::unordered_set<std::shared_ptr<Hold>> watched BATON_GUARDED_BY(mutex);
  // Declared lost here; on_lost is not called yet.
  std::vector<std::shared_ptr<Hold>> declared BATON_GUARDED_BY(mutex);
  // Lost; the loss is not announced yet.
  std::deque<std::shared_ptr<Hold>> queue BATON_GUARDED_BY(mutex);
  LossDuties duties BATON_GUARDED_BY(mutex);
  LossPhase phase BATON_GUARDED_BY(mutex) = LossPhase::running;
  // No second log line about the limit before this time.
  Time quiet_until BATON_GUARDED_BY(mutex){};
};

LossThread::LossThread(const Clock& clock, LogFunction log,
                       std::function<void(std::shared_ptr<Hold>)> on_lost,
                       std::function<void()> nudge)
    : state_(std::make_shared<State>(clock, std::move(log), std::move(on_lost), std::move(nudge))) {
  const MutexLock guard(state_->mutex);
  state_->spawn();
}

LossThread::~LossThread() { stop(std::chrono::milliseconds(0)); }

void LossThread::watch(std::shared_ptr<Hold> hold) {
  if (hold->lease().deadline() == kNever) return;  // no lease: nothing to watch
  const MutexLock guard(state_->mutex);
  state_->watched.insert(std::move(hold));
  state_->ring();
}

void LossThread::unwatch(const std::shared_ptr<Hold>& hold) {
  if (hold->lease().deadline() == kNever) return;
  const MutexLock guard(state_->mutex);
  state_->watched.erase(hold);
}

void LossThread::announce(std::shared_ptr<Hold> hold) {
  const MutexLock guard(state_->mutex);
  state_->watched.erase(hold);
  state_->queue.push_back(std::move(hold));
  state_->ring();
  if (state_->duties.threads() > 0) return;
  try {
    state_->spawn();  // after stop(): losses are still announced
  } catch (const std::exception& e) {
    state_->log(LogLevel::error,
                std::string("cannot start a thread that announces lost locks: ") + e.what());
  }
}

bool LossThread::on_thread() const noexcept { return current_loss_thread == state_.get(); }

bool LossThread::settle(std::chrono::milliseconds wait) noexcept {
  State& s = *state_;
  if (current_loss_thread == &s) return false;
  const auto until = Condition::Clock::now() + wait;
  MutexLock guard(s.mutex);
  s.collect_due();
  s.ring();
  while (!s.settled()) {
    if (!s.changed.wait_until(guard, until)) return s.settled();
  }
  return true;
}

void LossThread::stop(std::chrono::milliseconds wait) noexcept {
  State& s = *state_;
  const auto until = Condition::Clock::now() + wait;
  MutexLock guard(s.mutex);
  s.phase = LossPhase::stopping;
  s.watched.clear();
  s.declared.clear();
  s.ring();
  // No thread calls on_lost or nudge after this wait: the client that they use may be destroyed.
  while (s.duties.of(LossDuty::telling) > 0) s.changed.wait(guard);
  if (current_loss_thread == &s) return;
  while (s.duties.threads() > 0 && s.changed.wait_until(guard, until)) {
  }
}

}  // namespace baton::internal
