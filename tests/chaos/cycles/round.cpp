#include "chaos/cycles/round.h"

#include "support/eventually.h"

#include <unistd.h>

#include <coroutine>
#include <cstdlib>
#include <exception>
#include <future>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <utility>
#include <vector>

namespace baton::chaos {

namespace {

using namespace std::chrono_literals;
using test::kLong;

// Nine locks that are used again and again, and for each tenth round a lock that is never used
// again.
std::string name_of(int number) {
  return "cycles/" +
         (number % 10 == 9 ? "once-" + std::to_string(number) : std::to_string(number % 10));
}

// Volatile: otherwise the compiler may remove an allocation that is not used.
void* volatile forgotten;

[[noreturn]] void wrong(const std::string& what) { throw std::runtime_error(what); }

// An acquire that is under way, and its result.
class Pending {
 public:
  Pending(DistributedMutex& mutex, AcquireOptions options) {
    options.stop = stop_.get_token();
    mutex.acquire_async(std::move(options),
                        [promise = std::move(promise_)](Result<Lock> r) mutable {
                          promise.set_value(std::move(r));
                        });
  }
  void cancel() { stop_.request_stop(); }
  Result<Lock> result() {
    if (ended_.wait_for(kLong) != std::future_status::ready) wrong("an acquire did not end");
    return ended_.get();
  }
  void expect(Errc how) {
    const Result<Lock> r = result();
    if (r || r.error().errc() != how) {
      wrong("expected " + make_error_code(how).message() + ", but " +
            (r ? "it was granted" : r.error().what()));
    }
  }

 private:
  std::stop_source stop_;
  std::promise<Result<Lock>> promise_;
  std::future<Result<Lock>> ended_ = promise_.get_future();
};

// A coroutine that its owner may destroy while it waits.
struct Waiting {
  struct promise_type {
    Waiting get_return_object() {
      return Waiting(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  explicit Waiting(std::coroutine_handle<promise_type> h) : handle(h) {}
  Waiting(Waiting&& from) noexcept : handle(std::exchange(from.handle, nullptr)) {}
  Waiting& operator=(Waiting&&) = delete;
  ~Waiting() {
    if (handle) handle.destroy();
  }
  std::coroutine_handle<promise_type> handle;
};

Waiting wait_in_coroutine(DistributedMutex mutex) { auto lock = co_await mutex.co_acquire(); }

}  // namespace

void Rounds::cancelled(DistributedMutex& mutex, const std::string& name) {
  std::vector<std::unique_ptr<Pending>> at_once;
  for (int i = 0; i < 5; ++i) {  // cancelled at once, in whatever state the acquire is
    at_once.push_back(std::make_unique<Pending>(mutex, AcquireOptions{}));
    at_once.back()->cancel();
  }
  for (auto& p : at_once) p->expect(Errc::cancelled);
  std::vector<std::unique_ptr<Pending>> in_line;
  for (int i = 0; i < 5; ++i) in_line.push_back(std::make_unique<Pending>(mutex, AcquireOptions{}));
  if (!test::eventually("five stand in line",
                        [&] { return other_.inspect(name).entries.size() >= 6; })) {
    wrong("the waiters did not join");
  }
  for (auto& p : in_line) p->cancel();
  for (auto& p : in_line) p->expect(Errc::cancelled);
}

void Rounds::timed_out(DistributedMutex& mutex) {
  std::vector<std::unique_ptr<Pending>> three;
  for (int i = 0; i < 3; ++i) {
    three.push_back(std::make_unique<Pending>(mutex, AcquireOptions{.timeout = 1ms}));
  }
  for (auto& p : three) p->expect(Errc::timeout);
}

void Rounds::refused(DistributedMutex& mutex) {
  for (int i = 0; i < 3; ++i) {
    if (mutex.try_acquire().has_value()) wrong("a lock that is held was had");
  }
}

void Rounds::destroyed(DistributedMutex& mutex) {
  const Waiting waiting = wait_in_coroutine(mutex);
}

void Rounds::handed_over(DistributedMutex& mutex, Lock hold) {
  Pending next(mutex, {.timeout = kLong});
  hold.release(kLong);
  const auto result = next.result();  // the destructor releases it
  if (!result) wrong("a free lock was not handed over");
}

void Rounds::re_entered(DistributedMutex& mutex) {
  mutex.lock();
  if (!mutex.try_lock()) wrong("a lock of one's own was not had again");
  mutex.unlock();
  mutex.unlock();
}

void Rounds::leak_something(int number) {
  switch (leak_) {
    case Leak::memory:
      forgotten = std::malloc(300);
      break;
    case Leak::entry:
      // The memory is still reachable: only the entry is a leak.
      if (number == 0) forgotten = new Lock(worker_.mutex("cycles/left").acquire_for(kLong));
      break;
    case Leak::descriptor:
      static_cast<void>(::dup(0));
      break;
    case Leak::none:
      break;
  }
}

void Rounds::run(int number) {
  const std::string name = name_of(number);
  auto mutex = worker_.mutex(name);
  // The holder ahead belongs alternately to another client and to the same client.
  auto hold = (number % 2 == 0 ? other_.mutex(name) : mutex).acquire({.timeout = kLong});
  cancelled(mutex, name);               // 10
  timed_out(mutex);                     // 3
  refused(mutex);                       // 3
  destroyed(mutex);                     // 1
  handed_over(mutex, std::move(hold));  // 2, with the hold
  re_entered(mutex);                    // 1
  leak_something(number);
}

void Rounds::close_in_line(const std::string& url, const ClientOptions& options) {
  auto client = Client::connect(url, options);
  auto mutex = client.mutex("cycles/closing");
  auto hold = mutex.acquire({.timeout = kLong});
  Pending waits(mutex, {});
  client.close();
  waits.expect(Errc::closed);
}

}  // namespace baton::chaos
