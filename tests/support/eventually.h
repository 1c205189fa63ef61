// Waits until a condition is true, and reports what it waited for. Tests use no other kind of wait.
#pragma once

#include "support/boot_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string_view>
#include <thread>

namespace baton::test {

using namespace std::chrono_literals;

// No test waits longer than this.
inline constexpr std::chrono::milliseconds kLong{30'000};

inline void poll_pause() { std::this_thread::sleep_for(1ms); }

// Polls until the predicate is true. `tick` lets a little time pass; with a virtual store it
// advances the store's clock.
template <class Predicate, class Tick>
::testing::AssertionResult eventually_with(std::string_view what, std::chrono::milliseconds limit,
                                           Predicate predicate, Tick tick) {
  const Stopwatch watch;
  do {
    if (predicate()) return ::testing::AssertionSuccess();
    tick();
  } while (watch.elapsed() < limit);
  if (predicate()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure()
         << "waited " << watch.elapsed().count() << " ms for: " << what;
}

template <class Predicate>
::testing::AssertionResult eventually(std::string_view what, Predicate predicate,
                                      std::chrono::milliseconds limit = kLong) {
  return eventually_with(what, limit, predicate, poll_pause);
}

}  // namespace baton::test
