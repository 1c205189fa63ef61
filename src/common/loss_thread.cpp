#include "common/loss_thread.h"

#include "common/signal_shield.h"
#include "common/unique_fd.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

namespace baton::internal {

namespace {
constexpr int kMaxThreads = 8;
constexpr std::chrono::milliseconds kNudgeEvery{500};

// Set on the threads of every LossThread: stop() there must not wait for itself.
thread_local const void* current_loss_thread = nullptr;

UniqueFd checked(int fd, const char* what) {
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
        wake(checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")),
        // Not a condition variable: those sleep on a clock that stops during suspend.
        timer(checked(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK),
                      "timerfd_create")) {}

  void ring() const noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto n = ::write(wake.get(), &one, sizeof one);
  }

  // Starts a thread that waits. The mutex is held.
  void spawn() {
    const SignalShield shield;
    ++threads;
    ++idle;
    try {
      std::thread([self = shared_from_this()] { self->loop(); }).detach();
    } catch (...) {
      --threads;
      --idle;
      throw;
    }
  }

  // Collects holds whose time is over, and says when to look again. The mutex is held.
  Time collect_due() {
    Time next = kNever;
    for (auto it = watched.begin(); it != watched.end();) {
      const Errc due = (*it)->due_loss();
      if (due == Errc{} && (*it)->is_held()) {
        next = std::min(next, (*it)->lease().deadline());
        ++it;
        continue;
      }
      if (due != Errc{} && (*it)->become_lost(due)) queue.emplace_back(*it, true);
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
        [[maybe_unused]] const auto n = ::read(fd.fd, &count, sizeof count);
      }
    }
  }

  void loop() {
    current_loss_thread = this;
    std::unique_lock guard(mutex);
    for (;;) {
      const Time next = collect_due();
      if (queue.empty()) {
        changed.notify_all();  // settled
        if (stopping || idle > 1) break;
        guard.unlock();
        wait_for_work(nudge ? std::min(next, BootClock::now() + kNudgeEvery) : next);
        guard.lock();
        if (!nudge || stopping) continue;
        ++telling;  // stop() waits for it
        guard.unlock();
        nudge();
        guard.lock();
        --telling;
        changed.notify_all();
        continue;
      }
      auto [hold, tell] = std::move(queue.front());
      queue.pop_front();
      --idle;
      ++busy;
      if (idle == 0 && threads < kMaxThreads && (!stopping || !queue.empty())) {
        try {
          spawn();
        } catch (const std::exception& e) {
          log(LogLevel::warning, std::string("cannot start a thread for losses: ") + e.what());
        }
      }
      const bool telling_now = tell && !stopping;
      telling += telling_now ? 1 : 0;
      guard.unlock();
      if (telling_now) {
        on_lost(hold);
        guard.lock();
        --telling;
        changed.notify_all();
        guard.unlock();
      }
      hold->announce_loss();
      hold.reset();
      guard.lock();
      --busy;
      ++idle;
    }
    --idle;
    --threads;
    changed.notify_all();
  }

  LogFunction log;
  std::function<void(std::shared_ptr<Hold>)> on_lost;
  const std::function<void()> nudge;
  const bool real;  // not the clock itself: a thread that lingers must not touch it
  UniqueFd wake;
  UniqueFd timer;

  std::mutex mutex;
  std::condition_variable changed;
  std::unordered_set<std::shared_ptr<Hold>> watched;
  std::deque<std::pair<std::shared_ptr<Hold>, bool>> queue;  // hold, call on_lost
  int threads = 0;
  int idle = 0;
  int busy = 0;
  int telling = 0;  // threads inside on_lost or nudge, which are ours and short
  bool stopping = false;
};

LossThread::LossThread(const Clock& clock, LogFunction log,
                       std::function<void(std::shared_ptr<Hold>)> on_lost,
                       std::function<void()> nudge)
    : state_(std::make_shared<State>(clock, std::move(log), std::move(on_lost), std::move(nudge))) {
  const std::lock_guard guard(state_->mutex);
  state_->spawn();
}

LossThread::~LossThread() { stop(std::chrono::milliseconds(0)); }

void LossThread::watch(std::shared_ptr<Hold> hold) {
  if (hold->lease().deadline() == kNever) return;  // no lease: nothing to watch
  const std::lock_guard guard(state_->mutex);
  state_->watched.insert(std::move(hold));
  state_->ring();
}

void LossThread::unwatch(const std::shared_ptr<Hold>& hold) {
  if (hold->lease().deadline() == kNever) return;
  const std::lock_guard guard(state_->mutex);
  state_->watched.erase(hold);
}

void LossThread::announce(std::shared_ptr<Hold> hold) {
  const std::lock_guard guard(state_->mutex);
  state_->watched.erase(hold);
  state_->queue.emplace_back(std::move(hold), false);
  state_->ring();
  if (state_->threads > 0) return;
  try {
    state_->spawn();  // after stop(): a loss is told all the same
  } catch (const std::exception& e) {
    state_->log(LogLevel::error, std::string("cannot start a thread for losses: ") + e.what());
  }
}

bool LossThread::on_thread() const noexcept { return current_loss_thread == state_.get(); }

void LossThread::poke() noexcept { state_->ring(); }

bool LossThread::settle(std::chrono::milliseconds wait) noexcept {
  State& s = *state_;
  if (current_loss_thread == &s) return false;
  std::unique_lock guard(s.mutex);
  s.collect_due();
  s.ring();
  return s.changed.wait_for(guard, wait, [&s] { return s.queue.empty() && s.busy == 0; });
}

void LossThread::stop(std::chrono::milliseconds wait) noexcept {
  State& s = *state_;
  std::unique_lock guard(s.mutex);
  s.stopping = true;
  s.watched.clear();
  s.ring();
  // Whatever happens, nobody calls on_lost or nudge after this: their target may be gone then.
  s.changed.wait(guard, [&s] { return s.telling == 0; });
  if (current_loss_thread == &s) return;
  s.changed.wait_for(guard, wait, [&s] { return s.threads == 0; });
}

}  // namespace baton::internal
