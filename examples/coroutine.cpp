// A thousand coroutines wait for the same lock without a thread for each of them. All run on the
// main thread: ClientOptions::executor decides where coroutines resume.
//
//   coroutine [--url URL] [--coroutines 1000]

#include <baton/baton.h>

#include "example.h"

#include <condition_variable>
#include <coroutine>
#include <deque>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <mutex>

// A minimal coroutine type: it starts at once and destroys itself at its end. You can use any
// coroutine type in which co_await works.
struct Task {
  struct promise_type {
    Task get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

// The event loop of the program.
class RunLoop {
 public:
  void post(std::function<void()> job) {  // from any thread
    {
      std::lock_guard guard(mutex_);
      jobs_.push_back(std::move(job));
    }
    wake_up_.notify_one();
  }
  void run_one() {
    std::unique_lock guard(mutex_);
    wake_up_.wait(guard, [&] { return !jobs_.empty(); });
    auto job = std::move(jobs_.front());
    jobs_.pop_front();
    guard.unlock();
    job();
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_up_;
  std::deque<std::function<void()>> jobs_;
};

struct Tally {
  int done = 0;  // not atomic: used only on the main thread, under the lock
  bool in_order = true;
  std::uint64_t last_token = 0;
};

Task work(baton::DistributedMutex mutex, int number, Tally& tally) {
  baton::Lock lock = co_await mutex.co_acquire();
  tally.in_order = tally.in_order && tally.done == number && lock.token() > tally.last_token;
  tally.last_token = lock.token();
  ++tally.done;
}  // released here

std::string threads_of_this_process() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("Threads:", 0) == 0) return line.substr(line.find_first_of("0123456789"));
  }
  return "?";
}

int run(int argc, char** argv) {
  example::Scratch scratch;
  const int coroutines = std::stoi(example::option(argc, argv, "--coroutines", "1000"));

  RunLoop loop;
  baton::ClientOptions options;
  options.executor = [&](std::function<void()> job) { loop.post(std::move(job)); };
  auto client = baton::Client::connect(example::store_url(argc, argv, scratch), options);
  auto mutex = client.mutex("examples/coroutine");

  baton::Lock lock = mutex.acquire();  // so that all of them have to wait
  Tally tally;
  for (int i = 0; i < coroutines; ++i) work(mutex, i, tally);
  std::cout << coroutines << " coroutines wait, " << threads_of_this_process()
            << " threads in this process" << std::endl;

  lock.release();
  while (tally.done < coroutines) loop.run_one();
  std::cout << tally.done << " had their turn, " << (tally.in_order ? "in order" : "NOT in order")
            << '\n';
  return tally.in_order ? 0 : 1;
}

int main(int argc, char** argv) try {
  example::limit_seconds(60, false);
  return run(argc, argv);
} catch (const std::exception& error) {
  std::cerr << "coroutine: " << error.what() << '\n';
  return 1;
}
