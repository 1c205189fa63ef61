// Measures 10,000 waiters of one process on one lock: the cost of a waiter, and the time until all
// have had the lock. Checks every grant: in order of arrival, with a greater token. Run each store
// in its own process, as bench/run does: memory that the first store has freed would hide what the
// second store needs.

#include "bench.h"

#include <baton/baton.h>

#include <condition_variable>
#include <mutex>

namespace {

constexpr int kWaiters = 10'000;

// Changed only by handlers, one at a time: each handler runs while it holds the lock.
struct Line {
  std::mutex mutex;
  std::condition_variable done;
  int served = 0;
  bool in_order = true;
  std::uint64_t last_token = 0;
};

void waiters(benchmark::State& state, const std::string& url) {
  for (auto _ : state) {
    auto client = baton::Client::connect(url);
    auto mutex = client.mutex("bench/waiters");
    { baton::Lock warm_up = mutex.acquire(); }
    baton::Lock lock = mutex.acquire();

    Line line;
    const double threads_before = bench::proc_status("Threads");
    const double descriptors_before = bench::open_descriptors();
    const double kilobytes_before = bench::proc_status("VmRSS");
    const auto start = bench::now_ns();
    for (int i = 0; i < kWaiters; ++i) {
      mutex.acquire_async({}, [&line, i](baton::Result<baton::Lock> result) {
        std::lock_guard guard(line.mutex);
        const bool good = result && line.served == i && result->token() > line.last_token;
        line.in_order = line.in_order && good;
        if (result) line.last_token = result->token();
        if (++line.served == kWaiters) line.done.notify_one();
      });  // the result owns the lock: its destructor releases the lock to the next waiter
    }
    // inspect() is queued behind the joins on the client's loop, so all waiters have joined when it
    // answers.
    const auto in_line = client.inspect(mutex.name()).entries.size();
    const auto parked = bench::now_ns();
    state.counters["threads_more"] = bench::proc_status("Threads") - threads_before;
    state.counters["fds_more"] = bench::open_descriptors() - descriptors_before;
    state.counters["bytes_per_waiter"] =
        (bench::proc_status("VmRSS") - kilobytes_before) * 1024 / kWaiters;
    state.counters["join_ms"] = static_cast<double>(parked - start) / 1e6;
    if (in_line != kWaiters + 1) {
      state.SkipWithError("not all waiters are in the queue");
      return;
    }

    const auto released = bench::now_ns();
    lock.release();
    {
      std::unique_lock guard(line.mutex);
      if (!line.done.wait_for(guard, std::chrono::seconds(120),
                              [&] { return line.served == kWaiters; })) {
        state.SkipWithError("not all waiters had the lock within 120 s");
        std::_Exit(1);  // handlers still use variables of this function
      }
    }
    const auto drained = bench::now_ns() - released;
    state.SetIterationTime(static_cast<double>(drained) / 1e9);
    state.counters["drain_ms"] = static_cast<double>(drained) / 1e6;
    state.counters["us_per_hand_over"] = static_cast<double>(drained) / 1e3 / kWaiters;
    if (!line.in_order) state.SkipWithError("NOT in order");
  }
}

void memory_waiters(benchmark::State& state) { waiters(state, "memory:bench-waiters"); }

void file_waiters(benchmark::State& state) {
  bench::Scratch scratch;
  waiters(state, scratch.url());
}

BENCHMARK(memory_waiters)->Unit(benchmark::kMillisecond)->UseManualTime()->Iterations(1);
BENCHMARK(file_waiters)->Unit(benchmark::kMillisecond)->UseManualTime()->Iterations(1);

}  // namespace

BENCHMARK_MAIN();
