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

// The code of the Error that f throws; nullopt: it throws none.
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
  // After every case: nothing stays in the store, and failures show what the clients logged.
  void TearDown() override;

  Rig& rig() { return *rig_; }
  Client open(std::string label = {});
  Client open(ClientOptions options);  // fills in the log unless set
  ClientOptions options() const;       // with the log of this test

  std::size_t entries(std::string_view name) { return rig_->entries(name); }
  // Waits until exactly n entries are in line.
  ::testing::AssertionResult in_line(std::string_view name, std::size_t n);
  // Waits for anything; time passes on virtual stores too.
  template <class Predicate>
  ::testing::AssertionResult soon(std::string_view what, Predicate predicate,
                                  milliseconds limit = kLong) {
    return test::eventually_with(what, limit, predicate, [this] { rig_->tick(); });
  }
  // Removes the entry of this token by force.
  bool evict(std::string_view name, std::uint64_t token, Client& as);

  // An acquire on another thread, bounded by kLong.
  static std::future<Lock> later(DistributedMutex mutex, AcquireOptions options = patient()) {
    return std::async(std::launch::async, [mutex, options = std::move(options)]() mutable {
      return mutex.acquire(std::move(options));
    });
  }
  // Waits for a future of later(), so that a lost wake-up fails instead of hanging.
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

// Notes that the running case was skipped by the table. Used by BATON_NEEDS only.
void note_skip(std::string_view rig, Can what);

// First line of a case that needs more than a working store.
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
// Cases of ?token_base=N.
class TokenBases : public Conformance {
 protected:
  void SetUp() override;
  std::string url(std::uint64_t base);  // the store's, with this token base
  Client connect(std::uint64_t base) { return Client::connect(url(base), options()); }
  // What the refusal says; empty: it was not refused.
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
// Sessions that end, cuts and lost answers. Runs on rigs whose time may be virtual: cases here wait
// with soon() and never block the thread that lets time pass.
class Faults : public Conformance {};

#define BATON_INSTANTIATE_SUITE(suite, ...) \
  INSTANTIATE_TEST_SUITE_P(, suite, ::testing::Values(__VA_ARGS__), ::baton::conformance::rig_name)

// All suites for one store: `real` runs on real time, `faulty` is the rig for Faults.
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
