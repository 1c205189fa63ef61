// Work that stops when its lock is lost: pass lost_token() to every function that waits or loops.
//
//   stop_when_lost [--url URL]

#include <baton/baton.h>

#include "example.h"

#include <atomic>
#include <condition_variable>
#include <future>
#include <iostream>
#include <mutex>

// A worker. It knows nothing about locks, it only checks a stop_token.
class Worker {
 public:
  void work(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      ++batches_;
      // Waiting for the next batch; wakes up at once when stop is requested.
      std::unique_lock guard(mutex_);
      wake_up_.wait_for(guard, stop, std::chrono::milliseconds(50), [] { return false; });
    }
  }
  int batches() const { return batches_; }

 private:
  std::atomic<int> batches_{0};
  std::mutex mutex_;
  std::condition_variable_any wake_up_;
};

int run(int argc, char** argv) {
  example::Scratch scratch;
  const std::string url = example::store_url(argc, argv, scratch);
  auto client = baton::Client::connect(url);
  baton::Lock lock = client.mutex("examples/stop-when-lost").acquire();
  std::cout << "working under token " << lock.token() << std::endl;

  // After five batches another client evicts the entry of this lock.
  Worker worker;
  auto eviction = std::async(std::launch::async, [&] {
    auto other = baton::Client::connect(url);
    example::wait_until([&] { return worker.batches() >= 5; });
    const auto entries = other.inspect("examples/stop-when-lost").entries;
    const auto now = std::chrono::steady_clock::now();
    if (!entries.empty()) other.evict("examples/stop-when-lost", entries.front().id);
    return now;
  });
  worker.work(lock.lost_token());  // returns because the lock is lost

  const auto stopped_at = std::chrono::steady_clock::now();
  const std::chrono::duration<double, std::milli> took = stopped_at - eviction.get();
  std::cout << "stopped after " << worker.batches() << " batches, " << took.count()
            << " ms after the loss; reason: " << lock.lost_reason().message() << '\n';
  return lock.state() == baton::LockState::lost && !lock.valid() ? 0 : 1;
}

int main(int argc, char** argv) try {
  example::limit_seconds(60, false);
  return run(argc, argv);
} catch (const std::exception& error) {
  std::cerr << "stop_when_lost: " << error.what() << '\n';
  return 1;
}
