// The queue behind ClientOptions::metrics.
#include <baton/baton.h>

#include "support/eventually.h"
#include "support/log_capture.h"

#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>

namespace baton {
namespace {

using test::eventually;
using test::kLong;
using namespace std::chrono_literals;

TEST(Metrics, AreDroppedAndCountedWhileTheProgramDoesNotTakeThem) {
  constexpr int kCycles = 6'000;  // an acquired and a released event each
  const test::LogCapture log;
  std::binary_semaphore inside{0};
  std::binary_semaphore leave{0};
  std::atomic<int> calls{0};
  ClientOptions options;
  options.log = log.sink();
  options.metrics = [&](const MetricEvent&) {
    if (calls.fetch_add(1) == 0) {
      inside.release();
      (void)leave.try_acquire_for(kLong);
    }
  };
  auto client = Client::connect("memory:metrics1", options);
  ASSERT_TRUE(inside.try_acquire_for(kLong)) << "session_started";
  for (int i = 0; i < kCycles; ++i) Lock lock = client.mutex("a").acquire();
  EXPECT_TRUE(eventually("the line in the log", [&] {
    return log.count(LogLevel::warning, "metrics: 10000 events wait") == 1;
  }));
  leave.release();
  EXPECT_TRUE(eventually("what was kept", [&] { return calls >= 10'001; }));
  EXPECT_TRUE(eventually(
      "the sum", [&] { return log.count(LogLevel::warning, "events were dropped since") == 1; }));
  EXPECT_EQ(calls, 10'001);
  { Lock lock = client.mutex("a").acquire(); }
  EXPECT_TRUE(eventually("new events", [&] { return calls == 10'003; }));
}

}  // namespace
}  // namespace baton
