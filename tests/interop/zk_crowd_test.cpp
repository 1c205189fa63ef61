// Many contenders of two libraries, many turns each, on one lock of a real ZooKeeper server; and
// the same without the lock, to see that the checks bite.
#include "interop/contender.h"
#include "interop/history.h"
#include "interop/zk_fixture.h"
#include "support/sanitized.h"
#include "support/temp_dir.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

namespace baton::interop {
namespace {

constexpr auto kCrowdLimit = 120s;

struct Crowd {
  std::map<Library, int> members;
  int turns;
};

std::string text_of(const Crowd& crowd) {
  std::string text;
  for (const auto& [library, count] : crowd.members) {
    text += (text.empty() ? "" : "And") + std::to_string(count) + std::string(name_of(library));
  }
  return text;
}
void PrintTo(const Crowd& crowd, std::ostream* out) { *out << text_of(crowd); }

class ZkCrowd : public ZkInteropTest, public ::testing::WithParamInterface<Crowd> {
 protected:
  void SetUp() override {
    ZkInteropTest::SetUp();
    if (HasFatalFailure()) return;
    place_.persistent_parents = GetParam().members.contains(Library::kazoo);
    place_.session = 10s;  // nobody is killed, and a busy machine must not end a session
    for (const auto& [library, count] : GetParam().members) {
      for (int i = 1; i <= count; ++i) {
        team_.push_back(start(library, std::string(name_of(library)) + std::to_string(i)));
      }
    }
  }

  // All begin together, when everybody is connected.
  void run(int turns, const std::string& how) {
    std::ofstream(counter_) << std::string(20, '0');
    std::ofstream(history_).flush();
    for (auto& member : team_) {
      member->say("turns " + std::to_string(turns) + " " + counter_ + " " + history_ + how);
    }
    for (auto& member : team_) {
      const auto words = member->answer(kCrowdLimit);
      ASSERT_FALSE(words.empty()) << member->who() << " did not finish";
      EXPECT_EQ(words[0], "DONE") << member->who();
    }
    for (auto& member : team_) EXPECT_EQ(member->quit(), 0) << member->who();
  }

  long counted() const {
    long value = -1;
    std::ifstream(counter_) >> value;
    return value;
  }
  long asked_for(int turns) const { return static_cast<long>(team_.size()) * turns; }

  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& member : team_) all.push_back(member->who());
    return all;
  }

  static void show(const History& history) {
    std::printf("%s\n", history.summary().c_str());
    ::testing::Test::RecordProperty("history", history.summary());
  }

  test::TempDir directory_;
  const std::string counter_ = directory_ / "counter";
  const std::string history_ = directory_ / "history";
  std::vector<std::unique_ptr<Contender>> team_;
};

TEST_P(ZkCrowd, TakesTurnsInTheOrderOfArrival) {
  const bool with_baton = GetParam().members.contains(Library::baton);
  const int turns = with_baton ? test::scaled(GetParam().turns) : GetParam().turns;
  ASSERT_NO_FATAL_FAILURE(run(turns, ""));
  const auto history = History::from_file(history_);
  show(history);
  EXPECT_EQ(counted(), asked_for(turns)) << "an update was lost";
  EXPECT_TRUE(history.complete(names(), turns));
  EXPECT_TRUE(history.exclusive());
  EXPECT_TRUE(history.in_order_of_arrival());
  EXPECT_TRUE(history.nobody_is_overtaken());
  EXPECT_TRUE(history.evenly_shared());
}

// The control: if the same run without the lock passes, the checks see nothing.
TEST_P(ZkCrowd, WithoutTheLockTheChecksBite) {
  constexpr int kTurns = 100;
  ASSERT_NO_FATAL_FAILURE(run(kTurns, " no-lock"));
  const auto history = History::from_file(history_);
  show(history);
  EXPECT_TRUE(history.complete(names(), kTurns));
  EXPECT_LT(counted(), asked_for(kTurns)) << "no update was lost";
  EXPECT_GT(history.overlaps(), 0u);
  EXPECT_FALSE(history.exclusive());
  EXPECT_FALSE(history.in_order_of_arrival()) << "there are no tokens";
}

INSTANTIATE_TEST_SUITE_P(WithBaton, ZkCrowd,
                         ::testing::Values(Crowd{{{Library::baton, 4}, {Library::curator, 2}}, 500},
                                           Crowd{{{Library::baton, 4}, {Library::kazoo, 2}}, 500}),
                         of_param);
INSTANTIATE_TEST_SUITE_P(PeersAlone, ZkCrowd,
                         ::testing::Values(Crowd{{{Library::curator, 2}}, 200},
                                           Crowd{{{Library::kazoo, 2}}, 200}),
                         of_param);

}  // namespace
}  // namespace baton::interop
