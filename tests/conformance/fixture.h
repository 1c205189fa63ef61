// The fixture of all conformance suites, and the list of suites.
#pragma once

#include "conformance/rig.h"
#include "support/eventually.h"
#include "support/log_capture.h"
#include "support/sanitized.h"

#include <baton/baton.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::conformance {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using test::boot_now;
using test::eventually;
using test::kLong;
using test::sanitized;
using test::scaled;
using test::Stopwatch;

// How much later than promised (timeout + 50 ms) a call may return on a busy test machine.
inline constexpr milliseconds kSlack = sanitized() ? 3'000ms : 1'000ms;

inline AcquireOptions within(milliseconds timeout, std::stop_token stop = {}) {
  return AcquireOptions{timeout, std::move(stop)};
}
inline AcquireOptions patient(std::stop_token stop = {}) { return within(kLong, std::move(stop)); }

// Returns the code of the Error that f throws, or nullopt if f throws no Error.
template <class F>
std::optional<Errc> error_of(F&& f) {
  try {
    std::forward<F>(f)();
  } catch (const Error& error) {
    return error.errc();
  }
  return std::nullopt;
}

class Conformance : public ::testing::TestWithParam<RigKind> {
 protected:
  void SetUp() override { rig_ = GetParam().make(); }
  // Checks that no entry is left in the store. After a failure it prints the newest log lines of
  // the clients.
  void TearDown() override;

  Rig& rig() { return *rig_; }
  Client open(std::string label = {});
  Client open(ClientOptions options);  // with the log of this test if it has none
  ClientOptions options() const;       // with the log of this test and a long connect_timeout

  std::size_t entries(std::string_view name) { return rig_->entries(name); }
  // Waits until the queue of the lock has exactly n entries.
  ::testing::AssertionResult in_line(std::string_view name, std::size_t n);
  // Waits until the predicate is true. On a virtual store each poll also advances the time.
  template <class Predicate>
  ::testing::AssertionResult soon(std::string_view what, Predicate predicate,
                                  milliseconds limit = kLong) {
    return test::eventually_with(what, limit, predicate, [this] { rig_->tick(); });
  }
  // Evicts the entry with this token. False: there is no such entry.
  bool evict(std::string_view name, std::uint64_t token, Client& as);

  // Runs acquire() on another thread, by default with the timeout kLong.
  static std::future<Lock> later(DistributedMutex mutex, AcquireOptions options = patient()) {
    return std::async(std::launch::async, [mutex, options = std::move(options)]() mutable {
      return mutex.acquire(std::move(options));
    });
  }
  // Waits for a future with a time limit, so that a lost wake-up fails the test instead of blocking
  // it.
  template <class T>
  static ::testing::AssertionResult ready(std::future<T>& future, milliseconds limit = kLong) {
    if (future.wait_for(limit) == std::future_status::ready) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << "not ready after " << limit.count() << " ms";
  }

  test::LogCapture log_;

 private:
  std::unique_ptr<Rig> rig_;
};

inline std::string rig_name(const ::testing::TestParamInfo<RigKind>& info) {
  return info.param.name;
}

// Records that the table allows the running case to be skipped. Only BATON_NEEDS calls it.
void note_skip(std::string_view rig, Can what);

// Skips the case if the rig cannot do `what`. This is the first line of a case that needs more than
// a working store.
#define BATON_NEEDS(what)                                                                 \
  if (!::baton::conformance::can(GetParam().name, what)) {                                \
    ::baton::conformance::note_skip(GetParam().name, what);                               \
    GTEST_SKIP() << GetParam().name << " cannot " << ::baton::conformance::to_text(what); \
  }

class Exclusion : public Conformance {};
class Fairness : public Conformance {};
class Patience : public Conformance {};
class Cancelling : public Conformance {};
class Reentry : public Conformance {};
class Ownership : public Conformance {};
class Tokens : public Conformance {};
// Cases for ?token_base=N.
class TokenBases : public Conformance {
 protected:
  void SetUp() override;
  std::string url(std::uint64_t base);  // the URL of the store with this token base
  Client connect(std::uint64_t base) { return Client::connect(url(base), options()); }
  // Tries to connect. Returns the message of the refusal, or an empty string if it was not refused.
  std::string refusal(const std::string& url);
};
class Eviction : public Conformance {};
class Releasing : public Conformance {};
class Closing : public Conformance {};
class Handlers : public Conformance {};
class Coroutines : public Conformance {};
class Names : public Conformance {};
class Operators : public Conformance {};
class StdLocks : public Conformance {};
class Crashes : public Conformance {};
class Forks : public Conformance {};
class Storms : public Conformance {};
// Sessions that end, cuts and lost answers. The time of the rig may be virtual, and then it passes
// only in soon(). So the main thread of a case makes no call that waits for time to pass.
class Faults : public Conformance {};

#define BATON_INSTANTIATE_SUITE(suite, ...) \
  INSTANTIATE_TEST_SUITE_P(, suite, ::testing::Values(__VA_ARGS__), ::baton::conformance::rig_name)

// All suites for one store. `real` is a rig on real time, `faulty` is the rig for Faults.
#define BATON_CONFORMANCE(real, faulty)      \
  BATON_INSTANTIATE_SUITE(Exclusion, real);  \
  BATON_INSTANTIATE_SUITE(Fairness, real);   \
  BATON_INSTANTIATE_SUITE(Patience, real);   \
  BATON_INSTANTIATE_SUITE(Cancelling, real); \
  BATON_INSTANTIATE_SUITE(Reentry, real);    \
  BATON_INSTANTIATE_SUITE(Ownership, real);  \
  BATON_INSTANTIATE_SUITE(Tokens, real);     \
  BATON_INSTANTIATE_SUITE(TokenBases, real); \
  BATON_INSTANTIATE_SUITE(Eviction, real);   \
  BATON_INSTANTIATE_SUITE(Releasing, real);  \
  BATON_INSTANTIATE_SUITE(Closing, real);    \
  BATON_INSTANTIATE_SUITE(Handlers, real);   \
  BATON_INSTANTIATE_SUITE(Coroutines, real); \
  BATON_INSTANTIATE_SUITE(Names, real);      \
  BATON_INSTANTIATE_SUITE(Operators, real);  \
  BATON_INSTANTIATE_SUITE(StdLocks, real);   \
  BATON_INSTANTIATE_SUITE(Crashes, real);    \
  BATON_INSTANTIATE_SUITE(Forks, real);      \
  BATON_INSTANTIATE_SUITE(Storms, real);     \
  BATON_INSTANTIATE_SUITE(Faults, faulty)

}  // namespace baton::conformance
