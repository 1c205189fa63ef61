#include "interop/crowd.h"

#include "support/sanitized.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>

namespace baton::interop {
namespace {

int turns_of(const Crowd& crowd) {
  if (const char* const given = std::getenv("BATON_TURNS")) return std::max(1, std::atoi(given));
  return crowd.members.contains(Library::baton) ? test::scaled(crowd.turns) : crowd.turns;
}

}  // namespace

std::string text_of(const Crowd& crowd) {
  std::string text;
  for (const auto& [library, count] : crowd.members) {
    text += (text.empty() ? "" : "And") + std::to_string(count) + std::string(name_of(library));
  }
  return text;
}

void CrowdTest::SetUp() {
  InteropTest::SetUp();
  if (HasFatalFailure()) return;
  place_.persistent_parents = GetParam().members.contains(Library::kazoo);
  place_.session = 10s;  // nobody is killed, and a busy machine must not end a session
  for (const auto& [library, count] : GetParam().members) {
    for (int i = 1; i <= count; ++i) {
      team_.push_back(start(library, std::string(name_of(library)) + std::to_string(i)));
    }
  }
}

void CrowdTest::run(int turns, const std::string& how) {
  std::ofstream(counter_) << std::string(20, '0');
  std::ofstream(history_).flush();
  for (auto& member : team_) {
    member->say("turns " + std::to_string(turns) + " " + counter_ + " " + history_ + how);
  }
  const auto limit = std::max<std::chrono::milliseconds>(120s, asked_for(turns) * 250ms);
  for (auto& member : team_) {
    const auto words = member->answer(limit);
    ASSERT_FALSE(words.empty()) << member->who() << " did not finish";
    EXPECT_EQ(words[0], "DONE") << member->who();
  }
  for (auto& member : team_) EXPECT_EQ(member->quit(), 0) << member->who();
}

History CrowdTest::history() const {
  auto history = History::from_file(history_);
  std::printf("%s\n", history.summary().c_str());
  RecordProperty("history", history.summary());
  return history;
}

long CrowdTest::counted() const {
  long value = -1;
  std::ifstream(counter_) >> value;
  return value;
}

std::vector<std::string> CrowdTest::names() const {
  std::vector<std::string> all;
  for (const auto& member : team_) all.push_back(member->who());
  return all;
}

void CrowdTest::takes_turns_in_the_order_of_arrival() {
  const int turns = turns_of(GetParam());
  ASSERT_NO_FATAL_FAILURE(run(turns, ""));
  const auto all = history();
  EXPECT_EQ(counted(), asked_for(turns)) << "an update was lost";
  EXPECT_TRUE(all.complete(names(), turns));
  EXPECT_TRUE(all.exclusive());
  EXPECT_TRUE(all.in_order_of_arrival());
  EXPECT_TRUE(all.nobody_is_overtaken());
  EXPECT_TRUE(all.evenly_shared());
}

void CrowdTest::without_the_lock_the_checks_bite() {
  constexpr int kTurns = 100;
  ASSERT_NO_FATAL_FAILURE(run(kTurns, " no-lock"));
  const auto all = history();
  EXPECT_TRUE(all.complete(names(), kTurns));
  EXPECT_LT(counted(), asked_for(kTurns)) << "no update was lost";
  EXPECT_GT(all.overlaps(), 0u);
  EXPECT_FALSE(all.exclusive());
  EXPECT_FALSE(all.in_order_of_arrival()) << "there are no tokens";
}

}  // namespace baton::interop
