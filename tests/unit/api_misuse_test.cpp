// Wrong use of the API gives a defined result, never undefined behaviour.
#include <baton/baton.h>

#include "support/eventually.h"
#include "support/log_capture.h"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

namespace baton {
namespace {

using namespace std::chrono_literals;
using internal::clamp_to_ms;
using std::chrono::milliseconds;

template <class F>
std::optional<Errc> error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.errc();
  }
  return std::nullopt;
}

TEST(Durations, AreRoundedUpAndNeverOverflow) {
  EXPECT_EQ(clamp_to_ms(1ms), 1ms);
  EXPECT_EQ(clamp_to_ms(1ns), 1ms);
  EXPECT_EQ(clamp_to_ms(1'000'001ns), 2ms);
  EXPECT_EQ(clamp_to_ms(0s), 0ms);
  EXPECT_EQ(clamp_to_ms(2h), 7'200'000ms);
  EXPECT_EQ(clamp_to_ms(std::chrono::duration<double>(0.0015)), 2ms);
  EXPECT_EQ(clamp_to_ms(std::chrono::duration<float>(0.5f)), 500ms);
  EXPECT_EQ(clamp_to_ms(milliseconds::max()), milliseconds::max());
  EXPECT_EQ(clamp_to_ms(std::chrono::hours::max()), milliseconds::max());
  EXPECT_EQ(clamp_to_ms(std::chrono::duration<double>(1e300)), milliseconds::max());
  EXPECT_EQ(clamp_to_ms(std::chrono::duration<double>(std::numeric_limits<double>::infinity())),
            milliseconds::max());
  EXPECT_GT(clamp_to_ms(std::chrono::nanoseconds::max()), 24h * 365 * 290);
}

TEST(Durations, NegativeAndNoNumbersStayNegative) {
  EXPECT_LT(clamp_to_ms(-1s), 0ms);
  EXPECT_LT(clamp_to_ms(std::chrono::hours::min()), 0ms);
  EXPECT_LT(clamp_to_ms(milliseconds::min()), 0ms);
  EXPECT_LT(clamp_to_ms(std::chrono::duration<double>(-1e300)), 0ms);
  EXPECT_LT(clamp_to_ms(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN())),
            0ms);
  EXPECT_LE(clamp_to_ms(-1ns), 0ms);
}

TEST(Types, MoveAndCopyAsPromised) {
  static_assert(!std::is_copy_constructible_v<Lock>);
  static_assert(!std::is_copy_assignable_v<Lock>);
  static_assert(std::is_nothrow_move_constructible_v<Lock>);
  static_assert(std::is_nothrow_move_assignable_v<Lock>);
  static_assert(std::is_nothrow_default_constructible_v<Lock>);
  static_assert(!std::is_copy_constructible_v<Client>);
  static_assert(std::is_nothrow_move_constructible_v<Client>);
  static_assert(std::is_copy_constructible_v<DistributedMutex>);
  static_assert(std::is_copy_assignable_v<DistributedMutex>);
  static_assert(!std::is_convertible_v<Lock, bool>);
  static_assert(noexcept(std::declval<DistributedMutex&>().unlock()));
  static_assert(noexcept(std::declval<const Lock&>().valid()));
  static_assert(std::is_aggregate_v<ClientOptions> && std::is_aggregate_v<AcquireOptions>);
  const AcquireOptions designated{.timeout = 5s};
  EXPECT_EQ(designated.timeout, 5'000ms);
}

// tests/compile contains the programs that must not compile. This test checks the types behind
// them.
TEST(Types, TemporariesAreNotAskedByBool) {
  static_assert(std::is_constructible_v<bool, Lock&> && std::is_constructible_v<bool, const Lock&>);
  static_assert(!std::is_constructible_v<bool, Lock>);
  static_assert(!std::is_constructible_v<bool, const Lock>);
  static_assert(std::is_constructible_v<bool, TryLock&>);
  static_assert(std::is_constructible_v<bool, const TryLock&>);
  static_assert(!std::is_constructible_v<bool, TryLock>);
  static_assert(!std::is_constructible_v<bool, const TryLock>);
  static_assert(!std::is_constructible_v<bool, Result<Lock>>);
  static_assert(!std::is_constructible_v<bool, Result<Client>>);
  static_assert(std::is_base_of_v<std::optional<Lock>, TryLock>);
  static_assert(std::is_same_v<decltype(std::declval<DistributedMutex&>().try_acquire()), TryLock>);
  static_assert(
      std::is_same_v<decltype(std::declval<DistributedMutex&>().try_acquire_for(1ms)), TryLock>);
  SUCCEED();
}

TEST(TryLockType, IsAnOptionalLock) {
  auto client = Client::connect("memory:try-lock-type");
  auto mutex = client.mutex("a");
  TryLock lock = mutex.try_acquire();
  ASSERT_TRUE(lock);
  EXPECT_TRUE(lock->valid());
  EXPECT_NE(lock->token(), 0u);
  TryLock refused = mutex.try_acquire();
  EXPECT_FALSE(refused);
  EXPECT_EQ(refused, std::nullopt);
  EXPECT_THROW((void)refused.value(), std::bad_optional_access);

  std::optional<Lock> plain = std::move(lock);  // for code that knows only std::optional
  ASSERT_TRUE(plain);
  EXPECT_TRUE(plain->valid());
  plain = mutex.try_acquire();  // tries while `plain` holds the lock, then releases this lock
  EXPECT_FALSE(plain);
  EXPECT_TRUE((*mutex.try_acquire()).valid());
  Lock mine = mutex.try_acquire().value();
  EXPECT_TRUE(mine);

  TryLock given = std::move(mine);
  EXPECT_TRUE(given->valid());
  given = std::nullopt;
  EXPECT_TRUE(mutex.try_acquire().has_value()) << "emptying a TryLock releases its lock";
  for (int turn = 0; turn < 2; ++turn) {
    if (auto held = mutex.try_acquire()) {
      EXPECT_FALSE(mutex.try_acquire().has_value()) << "the body runs with the lock";
    } else {
      ADD_FAILURE() << "the lock is free";
    }
  }
}

TEST(EmptyLock, AnswersEverything) {
  Lock lock;
  EXPECT_EQ(lock.token(), 0u);
  EXPECT_FALSE(lock.valid());
  EXPECT_EQ(lock.state(), LockState::released);
  EXPECT_EQ(lock.valid_for(), 0ms);
  EXPECT_EQ(lock.name(), "");
  EXPECT_FALSE(lock.lost_reason());
  EXPECT_FALSE(lock.lost_token().stop_requested());
  EXPECT_EQ(error_of([&] { lock.release(); }), Errc::not_held);
  EXPECT_EQ(error_of([&] { lock.verify(); }), Errc::not_held);
  EXPECT_EQ(error_of([&] { lock.release(-1ms); }), Errc::invalid_argument);
  Lock other = std::move(lock);
  lock = std::move(other);
  EXPECT_EQ(lock.token(), 0u);
}

TEST(MovedFromClient, SaysClosed) {
  auto client = Client::connect("memory:");
  Client other = std::move(client);
  EXPECT_EQ(error_of([&] { (void)client.mutex("a"); }), Errc::closed);  // NOLINT
  EXPECT_EQ(error_of([&] { (void)client.inspect("a"); }), Errc::closed);
  EXPECT_EQ(error_of([&] { (void)client.list(); }), Errc::closed);
  EXPECT_EQ(error_of([&] { (void)client.evict("a", "b"); }), Errc::closed);
  EXPECT_EQ(client.session().state, SessionState::closed);
  client.close();
  client = std::move(other);
  EXPECT_TRUE(client.mutex("a").try_acquire());
}

TEST(MovedFromMutex, AnswersLikeAMovedFromLock) {
  auto client = Client::connect("memory:moved-from-mutex");
  auto mutex = client.mutex("a");
  DistributedMutex other = std::move(mutex);
  EXPECT_EQ(mutex.name(), "");  // NOLINT
  EXPECT_FALSE(mutex.valid());
  mutex.unlock();
  EXPECT_EQ(error_of([&] { (void)mutex.token(); }), Errc::not_held);
  EXPECT_EQ(error_of([&] { (void)mutex.lost_token(); }), Errc::not_held);
  EXPECT_EQ(error_of([&] { mutex.lock(); }), Errc::closed);
  EXPECT_EQ(error_of([&] { (void)mutex.try_lock(); }), Errc::closed);
  EXPECT_EQ(error_of([&] { (void)mutex.try_lock_for(1ms); }), Errc::closed);
  EXPECT_EQ(error_of([&] { (void)mutex.acquire(); }), Errc::closed);
  EXPECT_EQ(error_of([&] { (void)mutex.acquire_for(1s); }), Errc::closed);
  EXPECT_EQ(error_of([&] { (void)mutex.try_acquire(); }), Errc::closed);
  EXPECT_EQ(error_of([&] { (void)mutex.try_acquire_for(1s); }), Errc::closed);
  EXPECT_EQ(error_of([&] { (void)mutex.co_acquire(); }), Errc::closed);
  EXPECT_EQ(error_of([&] {
              mutex.acquire_async({}, [](const Result<Lock>&) { ADD_FAILURE() << "called"; });
            }),
            Errc::closed);
  const auto result = mutex.acquire_result();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().errc(), Errc::closed);
  const DistributedMutex copy = mutex;
  EXPECT_EQ(copy.name(), "");
  EXPECT_TRUE(other.acquire_for(10s).valid()) << "the new handle has the lock's name";
  mutex = std::move(other);
  EXPECT_EQ(mutex.name(), "a");
  EXPECT_TRUE(mutex.acquire_for(10s).valid());
}

// seconds::max() does not fit into milliseconds. A plain conversion would make it negative.
TEST(Durations, TooLongForMillisecondsMeansForEver) {
  auto client = Client::connect("memory:durations");
  auto mutex = client.mutex("a");
  Lock lock = mutex.acquire_for(std::chrono::seconds::max());
  lock.verify(std::chrono::hours::max());
  lock.release(std::chrono::seconds::max());
  EXPECT_TRUE(mutex.acquire_for(std::chrono::hours::max()).valid());
  EXPECT_TRUE(mutex.acquire_for(std::chrono::duration<double>::max()).valid());
  EXPECT_TRUE(mutex.try_acquire_for(std::chrono::seconds::max()).has_value());
  EXPECT_TRUE(mutex.try_acquire_for(std::chrono::minutes::max()).has_value());
}

TEST(Durations, OfAnyKindAreTimeouts) {
  auto client = Client::connect("memory:durations2");
  auto mutex = client.mutex("a");
  for (const bool held : {false, true}) {
    std::optional<Lock> holder;
    if (held) holder = mutex.acquire();
    const std::optional<Errc> expected = held ? std::optional(Errc::timeout) : std::nullopt;
    EXPECT_EQ(error_of([&] { (void)mutex.acquire_for({}); }), expected);
    EXPECT_EQ(error_of([&] { (void)mutex.acquire_for(5ms); }), expected);
    EXPECT_EQ(error_of([&] { (void)mutex.acquire_for(1us); }), expected);
    EXPECT_EQ(error_of([&] { (void)mutex.acquire_for(0s); }), expected);
    EXPECT_EQ(error_of([&] { (void)mutex.acquire_for(0.005s); }), expected);
    EXPECT_EQ(mutex.try_acquire_for({}).has_value(), !held);
    EXPECT_EQ(mutex.try_acquire_for(1ns).has_value(), !held);
    EXPECT_EQ(mutex.try_acquire_for(std::chrono::duration<float>(0.005f)).has_value(), !held);
  }
  Lock lock = mutex.acquire_for(10s);
  lock.verify(10s);
  lock.verify(10'000ms);
  EXPECT_EQ(error_of([&] { lock.verify(-1ns); }), Errc::invalid_argument);
  EXPECT_EQ(error_of([&] { lock.release(-1s); }), Errc::invalid_argument);
  EXPECT_EQ(error_of([&] { (void)mutex.acquire_for(-1ns); }), Errc::invalid_argument);
  EXPECT_EQ(error_of([&] { (void)mutex.try_acquire_for(-1us); }), Errc::invalid_argument);
  EXPECT_EQ(error_of([&] { (void)mutex.acquire_for(std::chrono::seconds::min()); }),
            Errc::invalid_argument);
  lock.release(10s);
}

TEST(Misuse, BadNameIsRefusedEvenByAClosedClient) {
  auto client = Client::connect("memory:");
  client.close();
  EXPECT_EQ(error_of([&] { (void)client.mutex(""); }), Errc::invalid_name);
}

TEST(Misuse, ErrorsSayWhatOnWhichLock) {
  auto client = Client::connect("memory:misuse");
  auto lock = client.mutex("billing/invoices").acquire();
  const auto failed = client.mutex("billing/invoices").acquire_result({.timeout = 1ms});
  ASSERT_FALSE(failed);
  const std::string text = failed.error().what();
  EXPECT_NE(text.find("acquire"), text.npos) << text;
  EXPECT_NE(text.find("billing/invoices"), text.npos) << text;
  EXPECT_NE(text.find("memory"), text.npos) << text;
}

TEST(Misuse, ReleaseWhileAnotherHoldWaits) {
  auto client = Client::connect("memory:misuse2");
  auto mutex = client.mutex("a");
  auto lock = mutex.acquire();
  EXPECT_EQ(error_of([&] { (void)mutex.acquire_for(20ms); }), Errc::timeout)
      << "a handle waits for itself";
  EXPECT_FALSE(mutex.try_lock());
}

TEST(Misuse, UnlockAfterTheClientIsGone) {
  std::optional<DistributedMutex> mutex;
  const test::LogCapture log;
  {
    ClientOptions options;
    options.log = log.sink();
    auto client = Client::connect("memory:misuse3", options);
    mutex.emplace(client.mutex("a"));
    mutex->lock();
  }
  mutex->unlock();
  EXPECT_EQ(error_of([&] { mutex->lock(); }), Errc::closed);
}

// The thread ends without an unlock. The lock is released with its client.
TEST(Misuse, ForgottenUnlockEndsWithTheClient) {
  auto other = Client::connect("memory:misuse4");
  {
    auto client = Client::connect("memory:misuse4");
    std::thread([&] { client.mutex("a").lock(); }).join();
    EXPECT_FALSE(other.mutex("a").try_acquire().has_value());
  }
  EXPECT_TRUE(test::eventually("a free lock", [&] { return other.mutex("a").try_lock(); }));
}

TEST(Misuse, DeepRecursionCounts) {
  auto client = Client::connect("memory:misuse5");
  auto mutex = client.mutex("a");
  for (int i = 0; i < 100'000; ++i) mutex.lock();
  for (int i = 0; i < 99'999; ++i) mutex.unlock();
  EXPECT_TRUE(mutex.valid());
  mutex.unlock();
  EXPECT_FALSE(mutex.valid());
}

}  // namespace
}  // namespace baton
