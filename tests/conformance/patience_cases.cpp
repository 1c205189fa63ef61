// Timeouts: a call returns in time, and a huge timeout does not overflow. A call that times out
// leaves no entry.
#include "conformance/fixture.h"
#include "support/child.h"

#include <signal.h>

#include <functional>
#include <limits>

namespace baton::conformance {
namespace {

using std::chrono::nanoseconds;

TEST_P(Patience, TimeoutIsKeptAndLeavesNoEntry) {
  auto one = open();
  auto two = open();
  auto lock = one.mutex("a").acquire(patient());
  for (const auto timeout : {1ms, 30ms, 200ms}) {
    const Stopwatch watch;
    EXPECT_EQ(error_of([&] { (void)two.mutex("a").acquire(within(timeout)); }), Errc::timeout);
    EXPECT_GE(watch.elapsed() + 1ms, timeout);
    EXPECT_LE(watch.elapsed(), timeout + 50ms + kSlack);
    EXPECT_TRUE(in_line("a", 1));
  }
}

TEST_P(Patience, EveryStyleReportsTimeoutInItsOwnWay) {
  auto one = open();
  auto two = open();
  auto lock = one.mutex("a").acquire(patient());
  auto mutex = two.mutex("a");
  EXPECT_EQ(error_of([&] { (void)mutex.acquire_for(50ms); }), Errc::timeout);
  EXPECT_FALSE(mutex.try_acquire_for(50ms).has_value());
  EXPECT_FALSE(mutex.try_acquire(within(50ms)).has_value());
  EXPECT_FALSE(mutex.try_lock_for(50ms));
  const auto result = mutex.acquire_result(within(50ms));
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().errc(), Errc::timeout);
  EXPECT_NE(std::string(result.error().what()).find("a"), std::string::npos);
  std::promise<Errc> promise;
  mutex.acquire_async(within(50ms), [&](Result<Lock> r) {
    promise.set_value(r ? Errc::store_error : r.error().errc());
  });
  auto future = promise.get_future();
  ASSERT_TRUE(ready(future));
  EXPECT_EQ(future.get(), Errc::timeout);
  EXPECT_TRUE(in_line("a", 1));
}

TEST_P(Patience, ZeroIsOneAttempt) {
  auto one = open();
  auto two = open();
  {
    auto free = two.mutex("a").acquire(within(0ms));
    EXPECT_TRUE(free.valid());
  }
  ASSERT_TRUE(in_line("a", 0));
  auto lock = one.mutex("a").acquire(patient());
  const Stopwatch watch;
  EXPECT_EQ(error_of([&] { (void)two.mutex("a").acquire(within(0ms)); }), Errc::timeout);
  EXPECT_EQ(error_of([&] { (void)two.mutex("a").acquire_for(0ms); }), Errc::timeout);
  EXPECT_FALSE(two.mutex("a").try_acquire(within(0ms)).has_value());
  EXPECT_FALSE(two.mutex("a").try_lock_for(0s));
  EXPECT_LE(watch.elapsed(), kSlack);
  EXPECT_TRUE(in_line("a", 1));
}

TEST_P(Patience, NegativeTimeoutIsInvalid) {
  auto client = open();
  auto mutex = client.mutex("a");
  for (const auto bad : {-1ms, milliseconds::min()}) {
    EXPECT_EQ(error_of([&] { (void)mutex.acquire(within(bad)); }), Errc::invalid_argument);
    EXPECT_EQ(error_of([&] { (void)mutex.acquire_for(bad); }), Errc::invalid_argument);
    EXPECT_EQ(error_of([&] { (void)mutex.try_acquire(within(bad)); }), Errc::invalid_argument);
    EXPECT_EQ(error_of([&] { (void)mutex.try_acquire_for(bad); }), Errc::invalid_argument);
    const auto result = mutex.acquire_result(within(bad));
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().errc(), Errc::invalid_argument);
    std::promise<Errc> promise;
    mutex.acquire_async(within(bad), [&](Result<Lock> r) {
      promise.set_value(r ? Errc::store_error : r.error().errc());
    });
    auto future = promise.get_future();
    ASSERT_TRUE(ready(future));
    EXPECT_EQ(future.get(), Errc::invalid_argument);
  }
  EXPECT_EQ(entries("a"), 0u);
}

// As with std::timed_mutex, a negative duration means one attempt.
TEST_P(Patience, NegativeTryLockForIsOneAttempt) {
  auto one = open();
  auto two = open();
  auto mutex = two.mutex("a");
  ASSERT_TRUE(mutex.try_lock_for(-1s));
  mutex.unlock();
  ASSERT_TRUE(mutex.try_lock_for(std::chrono::duration<double>(-1e30)));
  mutex.unlock();
  ASSERT_TRUE(in_line("a", 0));
  auto lock = one.mutex("a").acquire(patient());
  EXPECT_FALSE(mutex.try_lock_for(-1s));
  EXPECT_FALSE(mutex.try_lock_for(nanoseconds::min()));
  EXPECT_FALSE(
      mutex.try_lock_for(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN())));
}

// Finds an overflow of now + d: the deadline would be in the past, and the call would fail at once.
TEST_P(Patience, HugeTimeoutsMeanForEver) {
  auto one = open();
  auto two = open();
  auto mutex = two.mutex("a");
  const std::vector<std::function<bool()>> calls{
      [&] { return mutex.acquire(within(milliseconds::max())).valid(); },
      [&] { return mutex.acquire(within(milliseconds::max() - 1ms)).valid(); },
      [&] { return mutex.acquire(within(std::chrono::hours(24 * 365 * 200))).valid(); },
      [&] { return mutex.acquire_for(milliseconds::max()).valid(); },
      [&] { return mutex.try_acquire_for(milliseconds::max()).has_value(); },
      [&] {
        const bool got = mutex.try_lock_for(nanoseconds::max());
        if (got) mutex.unlock();
        return got;
      },
      [&] {
        const bool got = mutex.try_lock_for(std::chrono::hours::max());
        if (got) mutex.unlock();
        return got;
      },
      [&] {
        const bool got = mutex.try_lock_for(std::chrono::duration<double>(1e300));
        if (got) mutex.unlock();
        return got;
      },
      [&] {
        const bool got = mutex.try_lock_until(std::chrono::steady_clock::time_point::max());
        if (got) mutex.unlock();
        return got;
      },
      [&] {
        const bool got = mutex.try_lock_until(std::chrono::system_clock::time_point::max());
        if (got) mutex.unlock();
        return got;
      }};
  for (std::size_t i = 0; i < calls.size(); ++i) {
    auto lock = one.mutex("a").acquire(patient());
    auto waiting = std::async(std::launch::async, calls[i]);
    ASSERT_TRUE(in_line("a", 2)) << "call " << i;
    EXPECT_EQ(waiting.wait_for(20ms), std::future_status::timeout) << "call " << i;
    lock.release();
    ASSERT_TRUE(ready(waiting)) << "call " << i;
    EXPECT_TRUE(waiting.get()) << "call " << i;
    ASSERT_TRUE(in_line("a", 0));
  }
}

TEST_P(Patience, TryLockUntilWorksOnEveryClock) {
  auto one = open();
  auto two = open();
  auto mutex = two.mutex("a");
  auto lock = one.mutex("a").acquire(patient());
  EXPECT_FALSE(mutex.try_lock_until(std::chrono::steady_clock::now() - 1h));
  EXPECT_FALSE(mutex.try_lock_until(std::chrono::system_clock::now() - 1h));
  EXPECT_FALSE(mutex.try_lock_until(std::chrono::steady_clock::time_point::min()));
  EXPECT_FALSE(mutex.try_lock_until(std::chrono::system_clock::time_point::min()));
  {
    const Stopwatch watch;
    EXPECT_FALSE(mutex.try_lock_until(std::chrono::steady_clock::now() + 80ms));
    EXPECT_FALSE(mutex.try_lock_until(std::chrono::system_clock::now() + 80ms));
    EXPECT_GE(watch.elapsed(), 155ms);
    EXPECT_LE(watch.elapsed(), 260ms + kSlack);
  }
  lock.release();
  ASSERT_TRUE(in_line("a", 0));
  ASSERT_TRUE(mutex.try_lock_until(std::chrono::steady_clock::now() + kLong));
  mutex.unlock();
  ASSERT_TRUE(mutex.try_lock_until(std::chrono::system_clock::now() - 1h));
  mutex.unlock();
}

TEST_P(Patience, UnsetTimeoutOfTryAcquireIsZero) {
  auto one = open();
  auto two = open();
  auto lock = one.mutex("a").acquire(patient());
  const Stopwatch watch;
  EXPECT_FALSE(two.mutex("a").try_acquire().has_value());
  EXPECT_FALSE(two.mutex("a").try_acquire({}).has_value());
  EXPECT_LE(watch.elapsed(), kSlack);
}

// Other processes on the same store may be stopped at any point. That must not block calls of a
// client that runs.
TEST_P(Patience, StoppedHolderFreezesNobody) {
  BATON_NEEDS(Can::cross_processes);
  test::Child holder({"hold", rig().url(), "a"});
  ASSERT_TRUE(holder.line_with("held"));
  test::Child waiter({"wait", rig().url(), "a", "60000"});
  ASSERT_TRUE(in_line("a", 2));
  ASSERT_TRUE(holder.stop());
  ASSERT_TRUE(waiter.stop());
  auto client = open();
  const Stopwatch watch;
  EXPECT_EQ(error_of([&] { (void)client.mutex("a").acquire_for(200ms); }), Errc::timeout);
  EXPECT_FALSE(client.mutex("a").try_lock());
  EXPECT_EQ(client.inspect("a").entries.size(), 2u);
  EXPECT_TRUE(client.mutex("b").acquire_for(5s).valid());
  EXPECT_LE(watch.elapsed(), 250ms + 2 * kSlack);
  holder.signal(SIGCONT);
  waiter.signal(SIGCONT);
  holder.close_input();
  EXPECT_EQ(holder.exit_code(), 0);
  EXPECT_EQ(waiter.exit_code(), 0);
}

}  // namespace
}  // namespace baton::conformance
