#include "interop/crowd.h"

#include "history/shares.h"
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
  place_.session = 10s;  // no contender is killed, and no session may end on a busy machine
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

history::Holds CrowdTest::holds() const {
  auto holds = history::read(history_);
  const auto summary = history::summary(holds);
  std::printf("%s\n", summary.c_str());
  RecordProperty("history", summary);
  return holds;
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
  const auto all = holds();
  EXPECT_EQ(counted(), asked_for(turns)) << "an update was lost";
  EXPECT_TRUE(complete(all, names(), static_cast<std::uint64_t>(turns)));
  EXPECT_TRUE(none(overlaps(all)));
  EXPECT_TRUE(in_order_of_arrival(all));
  EXPECT_TRUE(none(overtaken(all)));
  EXPECT_TRUE(evenly_shared(all));
}

void CrowdTest::without_the_lock_the_checks_bite() {
  constexpr int kTurns = 100;
  ASSERT_NO_FATAL_FAILURE(run(kTurns, " no-lock"));
  const auto all = holds();
  EXPECT_TRUE(complete(all, names(), kTurns));
  EXPECT_LT(counted(), asked_for(kTurns)) << "no update was lost";
  EXPECT_FALSE(none(overlaps(all)));
  EXPECT_FALSE(in_order_of_arrival(all)) << "there are no tokens";
}

}  // namespace baton::interop
