#include "common/thread_loop.h"

#include "common/signal_shield.h"
#include "common/unique_fd.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <string>
#include <system_error>
#include <utility>

namespace baton::internal {

namespace {

constexpr int kBatch = 32;

UniqueFd checked(int fd, const char* what) {
  if (fd < 0) throw std::system_error(errno, std::generic_category(), what);
  return UniqueFd(fd);
}

}  // namespace

struct ThreadLoop::State : std::enable_shared_from_this<ThreadLoop::State> {
  State(const Clock& c, ErrorLog l)
      : clock(c),
        log(std::move(l)),
        epoll(checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
        wake(checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")),
        timer(
            checked(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd_create")) {
    watch_fd(wake.get());
    watch_fd(timer.get());
  }

  void watch_fd(int fd) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      throw std::system_error(errno, std::generic_category(), "epoll_ctl");
    }
  }

  void ring() const noexcept {
    const std::uint64_t one = 1;
    // A full counter wakes just as well.
    [[maybe_unused]] const auto n = ::write(wake.get(), &one, sizeof one);
  }

  void push(Task task) {
    const std::lock_guard guard(posted_mutex);
    if (!stopped) posted.push_back(std::move(task));
  }

  bool pop_posted(Task& task) {
    const std::lock_guard guard(posted_mutex);
    if (posted.empty()) return false;
    task = std::move(posted.front());
    posted.pop_front();
    return true;
  }

  void call(Task& task) noexcept {
    try {
      task();
    } catch (const std::exception& e) {
      report(e.what());
    } catch (...) {
      report("unknown exception");
    }
  }

  void report(const char* what) noexcept {
    try {
      log(std::string("a step of the client's loop failed: ") + what);
    } catch (...) {
      // Nothing left to tell it to.
    }
  }

  // Runs `task` and everything it deferred. On the strand.
  void step(Task task) {
    if (task) call(task);
    task = nullptr;
    while (!deferred.empty()) {
      Task next = std::move(deferred.front());
      deferred.pop_front();
      call(next);
    }
  }

  void run_due_timers() {
    while (!timers.empty() && timers.begin()->first.first <= clock.now()) {
      auto node = timers.extract(timers.begin());
      timer_keys.erase(node.key().second);
      step(std::move(node.mapped()));
    }
  }

  // Bounded: a caller whose own step is done must not serve everybody else for ever; and timers
  // come in between, or heartbeats would starve under load.
  void run_posted() {
    Task task;
    for (int n = 0; n < kBatch && pop_posted(task); ++n) {
      step(std::move(task));
      run_due_timers();
    }
  }

  bool has_posted() {
    const std::lock_guard guard(posted_mutex);
    return !posted.empty();
  }

  // The loop's thread sleeps on the earliest timer. A later one needs no call: it is found when
  // the earlier one fires. That saves a system call on most acquires.
  void arm() {
    if (!clock.real()) return;
    const Time first = timers.empty() ? kNever : timers.begin()->first.first;
    if (first >= armed) return;
    armed = first;
    const auto ns = std::max<std::int64_t>(first.time_since_epoch().count(), 1);
    itimerspec spec{};
    spec.it_value.tv_sec = ns / 1'000'000'000;
    spec.it_value.tv_nsec = ns % 1'000'000'000;
    timerfd_settime(timer.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
  }

  struct Owned {  // marks this thread as the one on the strand
    explicit Owned(State& s) : state(s) { state.owner.store(std::this_thread::get_id()); }
    ~Owned() { state.owner.store(std::thread::id()); }
    State& state;
  };

  // Does everything that can be done now. The strand is held by the caller.
  void work() {
    const Owned owned(*this);
    run_posted();
    step(nullptr);
    run_due_timers();
    arm();
    if (has_posted()) ring();
  }

  void loop() {
    std::array<epoll_event, 16> events{};
    while (!stopping.load(std::memory_order_acquire)) {
      const int n = epoll_wait(epoll.get(), events.data(), static_cast<int>(events.size()), -1);
      const std::lock_guard guard(strand);
      for (int i = 0; i < n; ++i) {
        const int fd = events[static_cast<std::size_t>(i)].data.fd;
        std::uint64_t count = 0;
        if (fd == wake.get()) {
          [[maybe_unused]] const auto r = ::read(fd, &count, sizeof count);
        } else if (fd == timer.get()) {
          [[maybe_unused]] const auto r = ::read(fd, &count, sizeof count);
          armed = kNever;
        } else if (const auto found = fds.find(fd); found != fds.end()) {
          const Owned owned(*this);
          const auto handler = found->second;  // kept: it may remove itself
          step([&handler] { (*handler)(); });
        }
      }
      work();
    }
    // What is left is dropped, after the strand: destructors may do anything.
    decltype(posted) left_posted;
    decltype(deferred) left_deferred;
    decltype(timers) left_timers;
    decltype(fds) left_fds;
    const std::lock_guard guard(strand);
    const std::lock_guard posted_guard(posted_mutex);
    stopped = true;
    left_posted.swap(posted);
    left_deferred.swap(deferred);
    left_timers.swap(timers);
    left_fds.swap(fds);
    timer_keys.clear();
  }

  const Clock& clock;
  ErrorLog log;
  UniqueFd epoll;
  UniqueFd wake;
  UniqueFd timer;
  std::atomic<bool> stopping{false};

  std::mutex posted_mutex;
  std::deque<Task> posted;
  bool stopped = false;

  std::mutex strand;  // guards everything below
  std::atomic<std::thread::id> owner{};
  std::deque<Task> deferred;
  std::map<std::pair<Time, std::uint64_t>, Task> timers;
  std::unordered_map<std::uint64_t, Time> timer_keys;
  std::uint64_t next_timer = 1;
  Time armed = kNever;
  std::unordered_map<int, std::shared_ptr<std::function<void()>>> fds;
};

ThreadLoop::ThreadLoop(const Clock& clock, ErrorLog log)
    : clock_(clock), state_(std::make_shared<State>(clock, std::move(log))) {
  const SignalShield shield;
  thread_ = std::thread([state = state_] { state->loop(); });
}

ThreadLoop::~ThreadLoop() { stop(); }

void ThreadLoop::defer(Task task) { state_->deferred.push_back(std::move(task)); }

TimerId ThreadLoop::at(Time when, Task task) {
  State& s = *state_;
  if (when == kNever) return TimerId::none;
  const std::uint64_t id = s.next_timer++;
  s.timers.emplace(std::pair(when, id), std::move(task));
  s.timer_keys.emplace(id, when);
  return TimerId{id};
}

void ThreadLoop::cancel(TimerId id) {
  State& s = *state_;
  const auto key = s.timer_keys.find(static_cast<std::uint64_t>(id));
  if (key == s.timer_keys.end()) return;
  s.timers.erase(std::pair(key->second, key->first));
  s.timer_keys.erase(key);
}

void ThreadLoop::post(Task task) {
  state_->push(std::move(task));
  state_->ring();
}

void ThreadLoop::run(Task task) {
  State& s = *state_;
  if (s.owner.load() == std::this_thread::get_id()) {
    // Already on the strand: taking it again would deadlock.
    s.deferred.push_back(std::move(task));
    return;
  }
  s.push(std::move(task));
  if (!s.strand.try_lock()) {
    s.ring();
    return;
  }
  const std::lock_guard guard(s.strand, std::adopt_lock);
  if (!s.stopping.load(std::memory_order_acquire)) s.work();
}

void ThreadLoop::add_fd(int fd, std::function<void()> handler) {
  state_->watch_fd(fd);
  state_->fds[fd] = std::make_shared<std::function<void()>>(std::move(handler));
}

void ThreadLoop::remove_fd(int fd) {
  if (state_->fds.erase(fd) > 0) epoll_ctl(state_->epoll.get(), EPOLL_CTL_DEL, fd, nullptr);
}

void ThreadLoop::settle() {
  do {
    const std::lock_guard guard(state_->strand);
    if (state_->stopping.load(std::memory_order_acquire)) return;
    state_->work();
  } while (state_->has_posted());
}

Time ThreadLoop::next_timer() {
  const std::lock_guard guard(state_->strand);
  return state_->timers.empty() ? kNever : state_->timers.begin()->first.first;
}

bool ThreadLoop::on_thread() const noexcept {
  return thread_.get_id() == std::this_thread::get_id();
}

void ThreadLoop::stop() noexcept {
  state_->stopping.store(true, std::memory_order_release);
  state_->ring();
  if (!thread_.joinable()) return;
  if (on_thread()) {
    thread_.detach();  // its State lives on in the thread
  } else {
    thread_.join();
  }
}

}  // namespace baton::internal
