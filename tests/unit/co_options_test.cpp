// Acquire options that are written inside a co_await expression. g++ 12 copies such a temporary as
// bytes and destroys both objects. This is a double free, which AddressSanitizer reports.
#include <baton/baton.h>

#include "support/eventually.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>

namespace baton {
namespace {

using test::eventually;
using namespace std::chrono_literals;

// A coroutine that starts at once and ends by itself.
struct Fire {
  struct promise_type {
    Fire get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

AcquireOptions options_of(const std::stop_token& token) { return {.timeout = 10s, .stop = token}; }

// Runs one form of co_acquire() in a coroutine. The source of its stop token outlives the
// coroutine.
#define EXPECT_LOCKED(call)                                                                   \
  do {                                                                                        \
    SCOPED_TRACE(#call);                                                                      \
    std::atomic<int> locked{0};                                                               \
    const auto body = [](DistributedMutex mutex, std::stop_token token, AcquireOptions named, \
                         std::atomic<int>& result) -> Fire {                                  \
      const bool held = (co_await (call)).valid();                                            \
      result = held && !token.stop_requested() && !named.stop.stop_requested() ? 1 : -1;      \
    };                                                                                        \
    std::stop_source source;                                                                  \
    body(client.mutex("a"), source.get_token(), options_of(source.get_token()), locked);      \
    ASSERT_TRUE(eventually("the lock", [&] { return locked != 0; }));                         \
    EXPECT_EQ(locked, 1);                                                                     \
    EXPECT_TRUE(source.request_stop());                                                       \
  } while (false)

TEST(CoOptions, EveryFormIsSafe) {
  auto client = Client::connect("memory:co-options");
  EXPECT_LOCKED(mutex.co_acquire());
  EXPECT_LOCKED(mutex.co_acquire({}));
  EXPECT_LOCKED(mutex.co_acquire({.timeout = 10s}));
  EXPECT_LOCKED(mutex.co_acquire({.timeout = 10s, .stop = token}));
  EXPECT_LOCKED(mutex.co_acquire({.stop = token}));
  EXPECT_LOCKED(mutex.co_acquire({.stop = std::stop_source().get_token()}));
  EXPECT_LOCKED(mutex.co_acquire({.stop{token}}));
  EXPECT_LOCKED(mutex.co_acquire({10s, token}));
  EXPECT_LOCKED(mutex.co_acquire(AcquireOptions{}));
  EXPECT_LOCKED(mutex.co_acquire(AcquireOptions{.timeout = 10s, .stop = token}));
  EXPECT_LOCKED(mutex.co_acquire(options_of(token)));
  EXPECT_LOCKED(mutex.co_acquire(named));
  EXPECT_LOCKED(mutex.co_acquire(std::move(named)));
}

TEST(CoOptions, StopInBracesEndsTheWait) {
  auto client = Client::connect("memory:co-options-stop");
  const Lock held = client.mutex("a").acquire();
  std::atomic<int> code{0};
  std::stop_source source;
  const auto body = [](DistributedMutex mutex, std::stop_token token,
                       std::atomic<int>& result) -> Fire {
    try {
      const Lock lock = co_await mutex.co_acquire({.timeout = 60s, .stop = token});
      result = -1;
    } catch (const Error& error) {
      result = static_cast<int>(error.errc());
    }
  };
  body(client.mutex("a"), source.get_token(), code);
  ASSERT_TRUE(eventually("a waiter", [&] { return client.inspect("a").entries.size() == 2; }));
  source.request_stop();
  ASSERT_TRUE(eventually("an end", [&] { return code != 0; }));
  EXPECT_EQ(code, static_cast<int>(Errc::cancelled));
}

// Copies the bytes by hand, as g++ 12 does, so that every compiler tests the protection.
TEST(CoOptions, CopiedBytesAreDestroyedWithoutHarm) {
  static_assert(std::is_aggregate_v<AcquireOptions>);
  std::stop_source source;
  std::optional<AcquireOptions> original;
  original.emplace(options_of(source.get_token()));
  EXPECT_TRUE(original->copy_check.constructed());
  alignas(AcquireOptions) unsigned char bytes[sizeof(AcquireOptions)];
  std::memcpy(bytes, static_cast<const void*>(&*original), sizeof bytes);
  auto* const copy = std::launder(reinterpret_cast<AcquireOptions*>(bytes));
  EXPECT_FALSE(copy->copy_check.constructed());
  {
    const AcquireOptions proper = std::move(*copy);  // must not take what the original owns
    EXPECT_TRUE(proper.copy_check.constructed());
    EXPECT_TRUE(proper.stop == original->stop);
  }
  std::destroy_at(copy);
  EXPECT_TRUE(original->stop.stop_possible());
  original.reset();
  EXPECT_TRUE(source.request_stop());
}

// CopyCheck protects members of every type. A short std::string, for example, points into itself.
struct WithText {
  std::stop_token stop{};
  std::string text{};
  internal::CopyCheck copy_check{};
  ~WithText() {
    if (copy_check.constructed()) return;
    std::construct_at(&stop);
    std::construct_at(&text);
  }
};

struct Echo {
  explicit Echo(WithText given) : text(given.text) {}
  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<>) const noexcept { return false; }
  std::string await_resume() { return std::move(text); }
  std::string text;
};

Fire echo(std::stop_token token, std::string& out) {
  const std::string in(100, 'x');
  out += co_await Echo({});
  out += co_await Echo({.text = "short"});
  out += co_await Echo({.stop = token, .text = in});
  out += co_await Echo(WithText{.stop = token, .text = "short, " + in});
}

TEST(CoOptions, StringsAreSafeToo) {
  std::string out;
  std::stop_source source;
  echo(source.get_token(), out);
  const std::string in(100, 'x');
  EXPECT_EQ(out, "short" + in + "short, " + in);
  EXPECT_TRUE(source.request_stop());
}

}  // namespace
}  // namespace baton
