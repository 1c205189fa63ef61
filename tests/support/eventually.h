// Waits for something that can be observed, and says what it waited for. The only wait of the
// tests.
#pragma once

#include "support/boot_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string_view>
#include <thread>

namespace baton::test {

using namespace std::chrono_literals;

// Nothing in the tests waits longer than this.
inline constexpr std::chrono::milliseconds kLong{30'000};

inline void poll_pause() { std::this_thread::sleep_for(1ms); }

// Polls until the predicate is true. `tick` lets a little time pass (virtual stores advance there).
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
