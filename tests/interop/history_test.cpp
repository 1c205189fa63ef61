// The checks over histories: each must object where it should, and only there.
#include "interop/history.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace baton::interop {
namespace {

// A fair queue of three: each calls when it has released, and is granted in the order of calls.
std::vector<Turn> fair(int rounds) {
  std::vector<Turn> turns;
  std::int64_t time = 1000;
  std::uint64_t token = 10;
  for (int round = 1; round <= rounds; ++round) {
    for (const char* who : {"a", "b", "c"}) {
      Turn turn;
      turn.who = who;
      turn.number = round;
      turn.call = time - 290;
      turn.joined = time - 280;
      turn.granted = time;
      turn.released = time + 90;
      turn.token = token;
      turn.entry = "x-lock-" + std::to_string(1'000'000'000 + token);
      turns.push_back(turn);
      time += 100;
      ++token;
    }
  }
  return turns;
}

TEST(InteropHistory, AFairQueuePasses) {
  const History history(fair(50));
  EXPECT_TRUE(history.complete({"a", "b", "c"}, 50));
  EXPECT_TRUE(history.exclusive());
  EXPECT_TRUE(history.in_order_of_arrival());
  EXPECT_TRUE(history.nobody_is_overtaken());
  EXPECT_TRUE(history.evenly_shared());
  EXPECT_EQ(history.overlaps(), 0u);
}

TEST(InteropHistory, AMissingTurnIsFound) {
  auto turns = fair(5);
  EXPECT_FALSE(History(turns).complete({"a", "b"}, 5)) << "c is a stranger";
  EXPECT_FALSE(History(turns).complete({"a", "b", "c", "d"}, 5)) << "d had no turn";
  EXPECT_FALSE(History(turns).complete({"a", "b", "c"}, 6));
  turns.erase(turns.begin() + 4);
  EXPECT_FALSE(History(turns).complete({"a", "b", "c"}, 5));
}

TEST(InteropHistory, AnOverlapIsFound) {
  auto turns = fair(5);
  turns[7].released = turns[8].granted + 1;
  EXPECT_FALSE(History(turns).exclusive());
  EXPECT_EQ(History(turns).overlaps(), 1u);
  turns[7].released = turns[8].granted;
  EXPECT_TRUE(History(turns).exclusive()) << "they only touch";
  turns[2].released = turns[6].granted + 1;
  EXPECT_FALSE(History(turns).exclusive());
  EXPECT_EQ(History(turns).overlaps(), 4u) << "one hold over four others";
}

TEST(InteropHistory, AnInversionIsFound) {
  auto turns = fair(5);
  std::swap(turns[4].token, turns[5].token);
  EXPECT_FALSE(History(turns).in_order_of_arrival()) << "by token";
  turns = fair(5);
  std::swap(turns[4].entry, turns[5].entry);
  EXPECT_FALSE(History(turns).in_order_of_arrival()) << "by sequence";
  turns[4].entry = "-";
  EXPECT_TRUE(History(turns).in_order_of_arrival()) << "unknown names do not count";
  turns[9].token = 0;
  EXPECT_FALSE(History(turns).in_order_of_arrival()) << "without a token";
}

TEST(InteropHistory, OvertakingIsFound) {
  auto turns = fair(5);
  turns[9].joined = turns[5].granted - 1;  // a's; waits while b and c have turns 5, 7 and 8
  EXPECT_FALSE(History(turns).nobody_is_overtaken());
  turns[9].joined = turns[5].granted;  // c's turn had begun
  EXPECT_TRUE(History(turns).nobody_is_overtaken());
  turns[9].joined = 0;
  EXPECT_TRUE(History(turns).nobody_is_overtaken()) << "not known";
}

TEST(InteropHistory, StarvingIsFound) {
  auto turns = fair(100);
  for (std::size_t i = 0; i < turns.size(); ++i) {  // c gets every fifth of its turns, a the rest
    if (turns[i].who == "c" && turns[i].number % 5 != 0) turns[i].who = "a";
  }
  EXPECT_FALSE(History(turns).evenly_shared());
  EXPECT_FALSE(History({}).evenly_shared()) << "nobody contended";
}

}  // namespace
}  // namespace baton::interop
