// Runs the checkers on histories made by hand: each checker must find every conflict, and only
// conflicts.
#include "history/holds.h"
#include "history/shares.h"
#include "support/temp_dir.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace baton::history {
namespace {

using namespace std::chrono_literals;

// A fair queue of three contenders. Each asks again while it still holds the lock, and the grants
// follow the order of asking.
Holds fair(std::uint64_t rounds) {
  Holds holds;
  Time time = 1000ns;
  std::uint64_t token = 10;
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    for (const char* who : {"a", "b", "c"}) {
      holds.push_back({.granted = time,
                       .left = time + 90ns,
                       .token = token,
                       .who = who,
                       .number = round,
                       .asked = time - 290ns,
                       .joined = time - 280ns,
                       .entry = "x-lock-" + std::to_string(1'000'000'000 + token)});
      time += 100ns;
      ++token;
    }
  }
  return holds;
}

bool good(const Holds& holds) { return exclusive_and_ordered(holds); }

TEST(History, AFairQueuePasses) {
  const auto holds = fair(50);
  EXPECT_TRUE(exclusive_and_ordered(holds));
  EXPECT_TRUE(in_order_of_arrival(holds));
  EXPECT_TRUE(none(overtaken(holds)));
  EXPECT_TRUE(complete(holds, {"a", "b", "c"}, 50));
  EXPECT_TRUE(evenly_shared(holds));
}

TEST(History, AnOverlapIsFound) {
  auto holds = fair(5);
  holds[7].left = holds[8].granted + 1ns;
  EXPECT_EQ(overlaps(holds).size(), 1U);
  EXPECT_FALSE(exclusive_and_ordered(holds));
  holds[7].left = holds[8].granted;
  EXPECT_EQ(overlaps(holds).size(), 0U) << "they only touch";
  holds[2].left = holds[6].granted + 1ns;
  EXPECT_EQ(overlaps(holds).size(), 4U) << "one hold over four others";
  std::swap(holds[0], holds[14]);
  EXPECT_EQ(overlaps(holds).size(), 4U) << "in whatever order they are recorded";
  for (auto& hold : holds) hold.token = 0;
  EXPECT_EQ(overlaps(holds).size(), 4U) << "without the word of any token";
}

TEST(History, EveryPairThatOverlapsIsFound) {
  const Holds holds{{1ms, 9ms, 1}, {5ms, 6ms, 2}, {4ms, 7ms, 3}, {10ms, 11ms, 4}};
  const auto found = overlaps(holds);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[2].earlier->token, 3U) << "also the pair that a longer hold covers";
  EXPECT_EQ(found[2].later->token, 2U);
}

TEST(History, OverlapsAndTokensThatFallAreSeen) {
  EXPECT_TRUE(good({}));
  EXPECT_TRUE(good({{1ms, 2ms, 1}, {3ms, 4ms, 2}, {5ms, 6ms, 7}}));
  EXPECT_TRUE(good({{5ms, 6ms, 7}, {1ms, 2ms, 1}, {3ms, 4ms, 2}})) << "in whatever order";
  EXPECT_FALSE(good({{1ms, 3ms, 1}, {2ms, 4ms, 2}})) << "they overlap";
  EXPECT_FALSE(good({{1ms, 9ms, 1}, {2ms, 3ms, 2}, {4ms, 5ms, 3}})) << "with one long before";
  EXPECT_FALSE(good({{3ms, 4ms, 1}, {1ms, 9ms, 2}})) << "one inside the other";
  EXPECT_FALSE(good({{1ms, 2ms, 2}, {3ms, 4ms, 1}})) << "tokens fall";
  EXPECT_FALSE(good({{1ms, 2ms, 2}, {3ms, 4ms, 2}})) << "tokens repeat";
  EXPECT_FALSE(good({{1ms, 2ms, 5}, {3ms, 4ms, 6}, {7ms, 8ms, 5}})) << "not only the last counts";
  EXPECT_FALSE(good({{1ms, 2ms, 0}, {3ms, 4ms, 1}})) << "no token";
}

TEST(History, AnInversionNamesTheEarliestGrantThatShouldHaveComeLater) {
  const Holds holds{{1ms, 2ms, 1}, {3ms, 4ms, 6}, {5ms, 6ms, 7}, {7ms, 8ms, 5}, {9ms, 10ms, 7}};
  const auto found = inversions(holds);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].earlier->token, 6U);
  EXPECT_EQ(found[0].later->token, 5U);
  EXPECT_EQ(found[1].earlier->granted, 5ms);
  EXPECT_EQ(found[1].later->granted, 9ms);
}

TEST(History, AnInversionIsFoundByTokenAndByEntry) {
  auto holds = fair(5);
  std::swap(holds[4].token, holds[5].token);
  EXPECT_FALSE(in_order_of_arrival(holds)) << "by token";
  holds = fair(5);
  std::swap(holds[4].entry, holds[5].entry);
  EXPECT_FALSE(in_order_of_arrival(holds)) << "by sequence";
  holds[4].entry = "";
  EXPECT_TRUE(in_order_of_arrival(holds)) << "unknown names do not count";
  holds[0].entry = "x-lock-0000000000";
  EXPECT_TRUE(in_order_of_arrival(holds)) << "the first number of a queue";
  holds[9].token = 0;
  EXPECT_FALSE(in_order_of_arrival(holds)) << "without a token";
}

TEST(History, OvertakingIsFound) {
  auto holds = fair(5);
  holds[9].joined = holds[8].asked - 1ns;  // it was in the queue when hold 8 asked
  const auto found = overtaken(holds);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].earlier->token, holds[8].token);
  EXPECT_EQ(found[0].later->token, holds[9].token);
  holds[9].joined = holds[6].asked - 1ns;
  EXPECT_EQ(overtaken(holds).at(0).earlier->token, holds[6].token) << "the earliest of three";
  holds[9].joined = holds[8].asked;
  EXPECT_TRUE(none(overtaken(holds))) << "it asked before";
  holds[9].joined = 0ns;
  EXPECT_TRUE(none(overtaken(holds))) << "not known";
  holds[9].joined = 1ns;
  for (std::size_t i = 0; i < 9; ++i) holds[i].asked = 0ns;
  EXPECT_TRUE(none(overtaken(holds))) << "nobody is known to have asked later";
}

TEST(History, AMissingTurnIsFound) {
  auto holds = fair(5);
  EXPECT_FALSE(complete(holds, {"a", "b"}, 5)) << "c is a stranger";
  EXPECT_FALSE(complete(holds, {"a", "b", "c", "d"}, 5)) << "d had no turn";
  EXPECT_FALSE(complete(holds, {"a", "b", "c"}, 6));
  std::swap(holds[3].number, holds[6].number);
  EXPECT_FALSE(complete(holds, {"a", "b", "c"}, 5)) << "a's turns 2 and 3 in the wrong order";
  std::swap(holds[3].number, holds[6].number);
  holds.erase(holds.begin() + 4);
  EXPECT_FALSE(complete(holds, {"a", "b", "c"}, 5));
}

TEST(History, StarvingIsFound) {
  for (const std::uint64_t share : {2, 5, 20}) {  // c keeps one of `share` turns, a gets the others
    auto holds = fair(100);
    for (auto& hold : holds) {
      if (hold.who == "c" && hold.number % share != 0) hold.who = "a";
    }
    EXPECT_FALSE(evenly_shared(holds)) << share;
  }
  EXPECT_FALSE(evenly_shared({})) << "nobody contended";
}

TEST(History, AFileIsReadAsItWasWritten) {
  const test::TempDir directory;
  std::ofstream(directory / "history") << "a 1 10 20 30 40 7 x-lock-3\nb 2 0 0 50 60 8 -\n";
  const auto holds = read(directory / "history");
  ASSERT_EQ(holds.size(), 2U);
  std::ostringstream text;
  text << Conflict{&holds[0], &holds[1]};
  EXPECT_EQ(text.str(),
            "a 1 (token 7, entry x-lock-3, asked -2e-05, in the queue -1e-05, held 0 to 1e-05 ms), "
            "then b 2 (token 8, held 2e-05 to 3e-05 ms)");
}

}  // namespace
}  // namespace baton::history
