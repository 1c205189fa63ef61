// Short calls on a client that has five thousand waiters and loses its server: each call must
// return in time and must not do the work of the waiters (G10).
#pragma once

#include "chaos/grants.h"
#include "support/boot_clock.h"
#include "support/eventually.h"
#include "support/proxy.h"
#include "support/sanitized.h"

#include <baton/baton.h>

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace baton::chaos {

// The highest cost of calls of one kind, made by one thread or by several.
//
// There are two measures, because other programs use the processors too:
//  - work: the processor time of the calling thread during the call. It includes work for other
//    callers, and does not depend on other programs.
//  - late: the time of the call beyond its timeout, without the time in which the calling thread
//    was ready to run and had no processor (the second number of schedstat). The contract says
//    "while the process is scheduled".
struct CallCost {
  std::chrono::nanoseconds work{0};
  std::chrono::nanoseconds late{std::chrono::nanoseconds::min()};
  std::size_t calls = 0;

  void add(const CallCost& other) {
    work = std::max(work, other.work);
    late = std::max(late, other.late);
    calls += other.calls;
  }
};

class CallMeter {
 public:
  template <class F>
  auto measure(std::chrono::nanoseconds timeout, F call) {
    const auto kept = starved();
    const auto worked = processor_time();
    const auto begun = test::boot_now();
    auto result = call();
    const auto took = test::boot_now() - begun;
    const auto work = processor_time() - worked;
    cost.add({work, took - timeout - (starved() - kept), 1});
    return result;
  }
  CallCost cost;

 private:
  static std::chrono::nanoseconds processor_time() {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
  }
  static std::chrono::nanoseconds starved() {
    std::int64_t ran = 0;
    std::int64_t waited = 0;
    std::ifstream("/proc/thread-self/schedstat") >> ran >> waited;
    return std::chrono::nanoseconds(waited);
  }
};

// Several threads acquire their own locks for a moment, with a short timeout, again and again. One
// more thread asks for the session state without a pause. So one of its calls runs on the strand
// whenever the thread of the loop does not, also when the event of a reconnect arrives.
class ShortCalls {
 public:
  static constexpr std::chrono::milliseconds kTimeout{50};

  ShortCalls(Client& client, int threads) {
    threads_.emplace_back([this, &client] {
      while (!stop_.load()) {
        questions_.measure(std::chrono::milliseconds(1000), [&] {
          try {
            return client.session().state;
          } catch (const Error&) {
            return SessionState::connecting;  // the client is busy
          }
        });
      }
    });
    for (int i = 0; i < threads; ++i) {
      costs_.push_back(std::make_unique<Costs>());
      threads_.emplace_back([this, &client, i, costs = costs_.back().get()] {
        const auto mutex = client.mutex("short/" + std::to_string(i));
        while (!stop_.load()) call(mutex, *costs);
      });
    }
  }
  ~ShortCalls() { join(); }
  ShortCalls(const ShortCalls&) = delete;
  ShortCalls& operator=(const ShortCalls&) = delete;

  std::size_t granted() const { return granted_.load(); }
  std::size_t late() const { return late_.load(); }

  // Ends the threads. The costs may be read only after this call.
  void join() {
    stop_.store(true);
    for (auto& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  CallCost acquires() const { return all(&Costs::acquires); }
  CallCost unlocks() const { return all(&Costs::unlocks); }
  CallCost questions() const { return questions_.cost; }

 private:
  struct Costs {
    CallMeter acquires;
    CallMeter unlocks;
  };

  void call(DistributedMutex mutex, Costs& costs) {
    const bool got = costs.acquires.measure(kTimeout, [&] { return mutex.try_lock_for(kTimeout); });
    ++(got ? granted_ : late_);
    if (got) {
      costs.unlocks.measure(std::chrono::milliseconds(0), [&] {
        mutex.unlock();
        return true;
      });
    }
  }
  CallCost all(CallMeter Costs::*which) const {
    CallCost sum;
    for (const auto& costs : costs_) sum.add((costs.get()->*which).cost);
    return sum;
  }

  std::atomic<bool> stop_{false};
  std::atomic<std::size_t> granted_{0};
  std::atomic<std::size_t> late_{0};
  std::vector<std::unique_ptr<Costs>> costs_;
  CallMeter questions_;
  std::vector<std::thread> threads_;
};

// The client `crowd` connects through the proxy, `observer` does not. After each of three short
// cuts, all waiters look at their queue. A longer cut then ends the session, and all waiters join
// again. in_line: returns how many entries the store has; it must be cheap.
inline void short_calls_in_a_cut_crowd(Client& crowd, Client& observer, test::Proxy& proxy,
                                       const std::function<std::size_t()>& in_line) {
  using namespace std::chrono_literals;
  using test::kLong;
  constexpr int kThreads = 4;
  constexpr int kCuts = 3;
  const auto kWaiters = static_cast<std::size_t>(test::scaled(5000));
  const std::string name = "line";
  const auto in_time = [](std::string_view what, const auto& predicate) {
    return test::eventually_with(what, kLong, predicate, [] { std::this_thread::sleep_for(20ms); });
  };
  // A slow machine may take long, but the number must keep growing.
  const auto all_in_line = [&] {
    for (auto n = in_line(); n < kWaiters + 1; n = in_line()) {
      auto more = in_time("the next ones", [&] { return in_line() > n; });
      if (!more) return more << "; " << n << " of " << kWaiters + 1 << " are in line";
    }
    return ::testing::AssertionSuccess();
  };

  const Lock held = observer.mutex(name).acquire({.timeout = kLong});
  // Must outlive this function: the handlers of the waiters run when their client closes.
  const auto ended = std::make_shared<std::atomic<std::size_t>>(0);
  for (std::size_t i = 0; i < kWaiters; ++i) {
    crowd.mutex(name).acquire_async({}, [ended](const Result<Lock>&) { ++*ended; });
  }
  ASSERT_TRUE(all_in_line());
  const auto line = line_of(observer, name);

  ShortCalls calls(crowd, kThreads);
  const auto more = [&](std::size_t (ShortCalls::*count)() const, std::size_t n) {
    return in_time("more short calls",
                   [&, goal = (calls.*count)() + n] { return (calls.*count)() >= goal; });
  };
  ASSERT_TRUE(more(&ShortCalls::granted, 100));
  for (int i = 0; i < kCuts; ++i) {
    proxy.cut();
    ASSERT_TRUE(more(&ShortCalls::late, 2 * kThreads));
    proxy.heal();
    ASSERT_TRUE(more(&ShortCalls::granted, 100));
  }
  EXPECT_EQ(line_of(observer, name), line) << "who is cut off for a moment keeps its place";

  proxy.cut();
  ASSERT_TRUE(in_time("the session is over", [&] { return in_line() <= 1; }));
  ASSERT_TRUE(more(&ShortCalls::late, 2 * kThreads));
  proxy.heal();
  ASSERT_TRUE(all_in_line());
  ASSERT_TRUE(more(&ShortCalls::granted, 100));
  calls.join();
  EXPECT_EQ(ended->load(), 0U) << "nobody is served, and nobody gives up";
  EXPECT_TRUE(held.valid());

  const auto ms = [](std::chrono::nanoseconds time) {
    return std::chrono::duration<double, std::milli>(time).count();
  };
  // One step on the strand, of this caller or of another, takes a fraction of a millisecond.
  const auto most_work = test::sanitized() ? 50ms : 10ms;
  const auto check = [&](const char* what, const CallCost& cost) {
    std::printf("[          ] %zu waiters, %zu %s: at most %.1f ms of work, %.1f ms too late\n",
                kWaiters, cost.calls, what, ms(cost.work), std::max(0.0, ms(cost.late)));
    EXPECT_LE(ms(cost.work), ms(most_work)) << what;
    EXPECT_LE(ms(cost.late), 50) << what;
  };
  check("short acquires", calls.acquires());
  check("unlocks", calls.unlocks());
  check("questions", calls.questions());
}

}  // namespace baton::chaos
