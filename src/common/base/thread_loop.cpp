#include "common/base/thread_loop.h"

#include "common/base/signal_shield.h"
#include "common/base/unique_fd.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <unordered_map>
#include <utility>

namespace baton::internal {

namespace {

UniqueFd checked(int fd, const char* what) {
  if (fd < 0) throw std::system_error(errno, std::generic_category(), what);
  return UniqueFd(fd);
}

}  // namespace

class ThreadLoop::State final : public Strand {
 public:
  State(const Clock& clock, ErrorLog log)
      : Strand(clock, std::move(log)),
        epoll_(checked(epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
        wake_(checked(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "eventfd")),
        timer_(
            checked(timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd_create")) {
    watch_fd(wake_.get());
    watch_fd(timer_.get());
  }

  void add_fd(int fd, std::function<void()> handler) {
    assert_on_strand();
    watch_fd(fd);
    fds_[fd] = std::make_shared<std::function<void()>>(std::move(handler));
  }

  void remove_fd(int fd) {
    assert_on_strand();
    if (fds_.erase(fd) > 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  }

  void loop() {
    std::array<epoll_event, 16> events{};
    while (!stopping()) {
      const int n = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
      const Turn turn(*this);
      for (int i = 0; i < n; ++i) {
        const int fd = events[static_cast<std::size_t>(i)].data.fd;
        std::uint64_t count = 0;
        if (fd == wake_.get()) {
          [[maybe_unused]] const auto r = ::read(fd, &count, sizeof count);
        } else if (fd == timer_.get()) {
          [[maybe_unused]] const auto r = ::read(fd, &count, sizeof count);
          fired();
        } else if (const auto found = fds_.find(fd); found != fds_.end()) {
          const Owned owned(*this);
          const auto handler = found->second;  // keeps the handler alive: it may remove itself
          step([&handler] { (*handler)(); });
        }
      }
      work();
    }
    decltype(fds_) left_fds;
    finish([&] { left_fds.swap(fds_); });
  }

 private:
  void watch_fd(int fd) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
      throw std::system_error(errno, std::generic_category(), "epoll_ctl");
    }
  }

  void ring() noexcept override {
    const std::uint64_t one = 1;
    // The write fails when the counter is full, but then the thread is woken already.
    [[maybe_unused]] const auto n = ::write(wake_.get(), &one, sizeof one);
  }

  void arm(Time first) noexcept override {
    const auto ns = std::max<std::int64_t>(first.time_since_epoch().count(), 1);
    itimerspec spec{};
    spec.it_value.tv_sec = ns / 1'000'000'000;
    spec.it_value.tv_nsec = ns % 1'000'000'000;
    timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &spec, nullptr);
  }

  UniqueFd epoll_;
  UniqueFd wake_;
  UniqueFd timer_;
  std::unordered_map<int, std::shared_ptr<std::function<void()>>> fds_;  // on the strand
};

ThreadLoop::ThreadLoop(const Clock& clock, ErrorLog log)
    : clock_(clock), state_(std::make_shared<State>(clock, std::move(log))) {
  const SignalShield shield;
  thread_ = std::thread([state = state_] { state->loop(); });
}

ThreadLoop::~ThreadLoop() { stop(); }

bool ThreadLoop::on_strand() const noexcept { return state_->on_strand(); }
void ThreadLoop::defer(Task task) { state_->defer(std::move(task)); }
TimerId ThreadLoop::at(Time when, Task task) { return state_->at(when, std::move(task)); }
void ThreadLoop::cancel(TimerId id) { state_->cancel(id); }
void ThreadLoop::post(Task task) { state_->post(std::move(task)); }
void ThreadLoop::post_brief(Task task) { state_->post_brief(std::move(task)); }
void ThreadLoop::run(Task task) { state_->run(std::move(task)); }

void ThreadLoop::add_fd(int fd, std::function<void()> handler) {
  state_->add_fd(fd, std::move(handler));
}
void ThreadLoop::remove_fd(int fd) { state_->remove_fd(fd); }

void ThreadLoop::settle() { state_->settle(); }
Time ThreadLoop::next_timer() { return state_->next_timer(); }

bool ThreadLoop::on_thread() const noexcept {
  return thread_.get_id() == std::this_thread::get_id();
}

void ThreadLoop::stop() noexcept {
  state_->stop();
  if (!thread_.joinable()) return;
  if (on_thread()) {
    thread_.detach();  // the thread keeps its State alive
  } else {
    thread_.join();
  }
}

}  // namespace baton::internal
