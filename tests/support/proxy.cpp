#include "support/proxy.h"

#include "support/relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <future>
#include <list>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace baton::test {
// All members belong to the thread, except `mutex_`, the members that it guards, and the atomics.
// Other threads use the members of the thread through call().
class Proxy::Loop {
 public:
  Loop();
  ~Loop();

  // Runs a task on the thread. Returns when the task has run and the bytes that it allows have been
  // forwarded.
  void call(const std::function<void()>& task);
  bool wait_cut(Direction d, std::chrono::milliseconds limit);

  void listen_on(int fd, Route route);
  void set_rewrite(std::uint16_t port, const Rewrite& rewrite);
  void take(int fd, const Route& route);  // `fd` is accepted
  // Resets the connections that have lost bytes. They cannot continue.
  void reset_lost();

  RelayState state;
  bool refuse = false;
  std::list<Relay> relays;
  std::atomic<int> connections{0};
  std::atomic<std::uint64_t> accepted{0};

 private:
  using Task = std::pair<const std::function<void()>*, std::promise<void>>;

  void run();
  void run_tasks();
  void watch(int fd) const;
  void accept_from(int listener, const Route& route);
  void pump_all();
  int wait_time() const;
  void publish();

  const int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  const int wake_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  bool stopping_ = false;
  std::map<int, Route> listeners_;

  std::mutex mutex_;
  std::condition_variable cut_;
  std::array<bool, 2> armed_{};
  std::vector<Task> tasks_;
  std::thread thread_;
};

Proxy::Loop::Loop() {
  if (epoll_ < 0 || wake_ < 0) throw std::runtime_error("proxy: no epoll or no eventfd");
  watch(wake_);
  sigset_t all;  // the new thread must not take signals of the test
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Proxy::Loop::~Loop() {
  call([this] { stopping_ = true; });
  thread_.join();
  for (const auto& [fd, route] : listeners_) ::close(fd);
  ::close(wake_);
  ::close(epoll_);
}

void Proxy::Loop::call(const std::function<void()>& task) {
  std::promise<void> promise;
  auto done = promise.get_future();
  {
    const std::lock_guard lock(mutex_);
    tasks_.emplace_back(&task, std::move(promise));
  }
  ::eventfd_write(wake_, 1);
  done.get();
}

bool Proxy::Loop::wait_cut(Direction d, std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return cut_.wait_for(lock, limit, [&] { return !armed_[RelayState::index(d)]; });
}

void Proxy::Loop::listen_on(int fd, Route route) {
  listeners_.emplace(fd, std::move(route));
  watch(fd);
}

void Proxy::Loop::set_rewrite(std::uint16_t port, const Rewrite& rewrite) {
  for (auto& [fd, route] : listeners_) {
    if (route.port == port) route.rewrite = rewrite;
  }
}

void Proxy::Loop::reset_lost() {
  for (auto& relay : relays) {
    if (relay.lost()) relay.close(true);
  }
}

void Proxy::Loop::watch(int fd) const {
  epoll_event e{};
  e.events = EPOLLIN;
  e.data.fd = fd;
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &e);
}

void Proxy::Loop::run() {
  std::array<epoll_event, 64> events;
  while (!stopping_) {
    const int n = ::epoll_wait(epoll_, events.data(), events.size(), wait_time());
    bool tasks = false;
    std::vector<std::pair<int, const Route*>> arrived;
    for (int i = 0; i < n; ++i) {
      const auto& event = events[static_cast<std::size_t>(i)];
      const int fd = event.data.fd;
      if (fd == wake_) {
        tasks = true;
      } else if (const auto found = listeners_.find(fd); found != listeners_.end()) {
        arrived.emplace_back(fd, &found->second);
      } else {
        for (auto& relay : relays) {
          if (relay.fd(0) == fd) relay.mark(0, event.events);
          if (relay.fd(1) == fd) relay.mark(1, event.events);
        }
      }
    }
    for (const auto& [fd, route] : arrived) accept_from(fd, *route);
    if (tasks) run_tasks();
    pump_all();
    publish();
  }
}

void Proxy::Loop::run_tasks() {
  eventfd_t count = 0;
  ::eventfd_read(wake_, &count);
  std::vector<Task> now;
  {
    const std::lock_guard lock(mutex_);
    now.swap(tasks_);
  }
  for (auto& [task, promise] : now) {
    (*task)();
    pump_all();
    publish();
    promise.set_value();
  }
}

// Runs after all bytes are moved, so that wait_cut() returns only when a cut is complete.
void Proxy::Loop::publish() {
  connections = static_cast<int>(
      std::count_if(relays.begin(), relays.end(), [](const Relay& r) { return !r.severed(); }));
  const std::array<bool, 2> armed{state.faults[0].armed(), state.faults[1].armed()};
  const std::lock_guard lock(mutex_);
  if (armed != armed_) cut_.notify_all();
  armed_ = armed;
}

void Proxy::Loop::accept_from(int listener, const Route& route) {
  const int fd = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd >= 0) take(fd, route);
}

void Proxy::Loop::take(int fd, const Route& route) {
  ++accepted;
  if (refuse) return close_hard(fd);
  relays.emplace_back(state, epoll_, fd, route);
}

void Proxy::Loop::pump_all() {
  relays.remove_if([](Relay& relay) { return !relay.pump(); });
}

int Proxy::Loop::wait_time() const {
  std::optional<RelayClock::time_point> first;
  for (const auto& relay : relays) {
    const auto due = relay.next_due();
    if (due && (!first || *due < *first)) first = due;
  }
  if (!first) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*first - RelayClock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

Proxy::Proxy() : loop_(std::make_unique<Loop>()) {}
Proxy::Proxy(std::uint16_t target_port) : Proxy() { port_ = add_route(target_port); }
Proxy::~Proxy() = default;

std::uint16_t Proxy::add_route(std::uint16_t target_port, bool reversed,
                               std::chrono::milliseconds patience) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* address = reinterpret_cast<sockaddr*>(&a);
  socklen_t size = sizeof a;
  if (fd < 0 || ::bind(fd, address, size) != 0 || ::listen(fd, 1024) != 0 ||
      ::getsockname(fd, address, &size) != 0) {
    if (fd >= 0) ::close(fd);
    throw std::runtime_error("proxy: no port to listen on");
  }
  const std::uint16_t port = ntohs(a.sin_port);
  loop_->call([&] { loop_->listen_on(fd, {port, target_port, reversed, patience, nullptr}); });
  return port;
}

void Proxy::rewrite_start(std::uint16_t port, Rewrite rewrite) {
  loop_->call([&] { loop_->set_rewrite(port, rewrite); });
}

void Proxy::adopt(int fd, std::uint16_t target_port, bool reversed) {
  loop_->call([&] { loop_->take(fd, {0, target_port, reversed, {}, nullptr}); });
}

void Proxy::cut() {
  loop_->call([&] {
    loop_->refuse = true;
    loop_->relays.clear();
  });
}

void Proxy::stall(Direction direction) {
  loop_->call([&] { loop_->state.fault(direction).stalled = true; });
}

void Proxy::blackhole(Direction direction) {
  loop_->call([&] {
    loop_->state.fault(direction).dropped = true;
    for (auto& relay : loop_->relays) relay.drop(direction);
  });
}

void Proxy::resume(Direction direction) {
  loop_->call([&] {
    auto& fault = loop_->state.fault(direction);
    fault.stalled = false;
    if (!std::exchange(fault.dropped, false)) return;
    // While the other direction is blackholed, not even a reset may arrive.
    if (!loop_->state.fault(reverse(direction)).dropped) loop_->reset_lost();
  });
}

void Proxy::delay(Direction direction, std::chrono::milliseconds time) {
  loop_->call([&] { loop_->state.fault(direction).delay = time; });
}

void Proxy::drip(Direction direction, std::size_t bytes, std::chrono::milliseconds every) {
  loop_->call([&] {
    auto& fault = loop_->state.fault(direction);
    fault.drip = bytes;
    fault.drip_every = every;
  });
}

void Proxy::heal() {
  loop_->call([&] {
    loop_->refuse = false;
    loop_->state.faults = {};
    loop_->reset_lost();
  });
}

void Proxy::reset_connections() {
  loop_->call([&] {
    for (auto& relay : loop_->relays) relay.close(true);
  });
}

void Proxy::cut_after_bytes(Direction direction, std::size_t n) {
  loop_->call([&] {
    auto& fault = loop_->state.fault(direction);
    fault.disarm();
    fault.bytes_left = n;
  });
}

void Proxy::cut_at_frame(Direction direction, int n, bool deliver, ZkFrameFilter filter) {
  loop_->call([&] {
    auto& fault = loop_->state.fault(direction);
    fault.disarm();
    fault.frames_left = n;
    fault.deliver = deliver;
    fault.filter = std::move(filter);
  });
}

void Proxy::cut_at_grpc(Direction direction, int n, bool deliver, Http2Filter filter) {
  loop_->call([&] {
    auto& fault = loop_->state.fault(direction);
    fault.disarm();
    fault.grpc_left = n;
    fault.deliver = deliver;
    fault.grpc_filter = std::move(filter);
  });
}

bool Proxy::wait_cut(Direction direction, std::chrono::milliseconds limit) {
  return loop_->wait_cut(direction, limit);
}

int Proxy::connections() const { return loop_->connections; }
std::uint64_t Proxy::accepted() const { return loop_->accepted; }
std::uint64_t Proxy::bytes(Direction direction) const {
  return loop_->state.bytes[RelayState::index(direction)];
}
std::uint64_t Proxy::frames(Direction direction) const {
  return loop_->state.frames[RelayState::index(direction)];
}
std::uint64_t Proxy::grpc_frames(Direction direction) const {
  return loop_->state.grpc_messages[RelayState::index(direction)];
}
std::uint64_t Proxy::drips(Direction direction) const {
  return loop_->state.drips[RelayState::index(direction)];
}

}  // namespace baton::test
