// Tests the overlap and revival checkers and the rules for evicted holds: each must object to a
// wrong history, and to no other.
#include "chaos/cluster/story.h"

#include <baton/error.h>

namespace baton::chaos {
namespace {

const Part kFirst{1, 1, 100, 0};
const Part kSecond{2, 1, 200, 0};

TEST(OverlapChecker, LetsHoldsFollowEachOther) {
  expect_fine(Story().holds(kFirst, 0, 10, 50).holds(kSecond, 5, 51, 90).verdict());
}

TEST(OverlapChecker, SeesTwoThatAreValidAtOnce) {
  const auto verdict = Story().holds(kFirst, 0, 10, 50).holds(kSecond, 5, 49, 90).verdict();
  EXPECT_EQ(verdict.of(Checker::overlap).violations, 1U);
  const auto& words = verdict.of(Checker::overlap).first.at(0);
  EXPECT_NE(words.find("client 2 op 1 (lock 0, token 200)"), std::string::npos) << words;
  EXPECT_NE(words.find("client 1 op 1 (lock 0, token 100)"), std::string::npos) << words;
  EXPECT_NE(words.find("at 0.0490 s"), std::string::npos) << words;
}

TEST(OverlapChecker, LetsTwoLocksBeHeldAtOnce) {
  expect_fine(Story().holds(kFirst, 0, 10, 50).holds({2, 1, 200, 1}, 5, 20, 40).verdict());
}

TEST(OverlapChecker, SeesAnOverlapWithOneLongBefore) {
  Story story;
  story.takes(kFirst, 0, 10);
  story.holds(kSecond, 5, 51, 60).holds({3, 1, 300, 0}, 5, 70, 80);
  story.releases(kFirst, 75);
  EXPECT_EQ(story.verdict().of(Checker::overlap).violations, 2U);
}

TEST(OverlapChecker, AsksNothingOfTheTimeAfterTheLastProof) {
  // The process is killed, so nothing proves that its hold was valid after 20.
  Story story;
  story.takes(kFirst, 0, 10).client(kFirst, 20, Kind::valid, 30);
  story.driver(25, Kind::killed, {}, 1);
  EXPECT_EQ(story.holds(kSecond, 5, 26, 90).verdict().of(Checker::overlap).violations, 0U);
}

Story an_eviction() {
  Story story;
  story.takes(kFirst, 0, 10);
  story.present(20, kFirst).evicted(100, kFirst).gone(110, kFirst);
  story.holds(kSecond, 5, 105, 400);
  return story;
}

TEST(OverlapChecker, ExcusesTheEvictedFromTheMomentOfTheEviction) {
  expect_fine(an_eviction().still_valid(kFirst, 300).verdict());
}

TEST(OverlapChecker, DoesNotExcuseTheEvictedBeforeTheEviction) {
  Story story = an_eviction().still_valid(kFirst, 300);
  EXPECT_EQ(story.holds({3, 1, 150, 0}, 5, 90, 95).verdict().of(Checker::overlap).violations, 1U);
}

TEST(OverlapChecker, DoesNotExcuseOthersForAnEviction) {
  Story story = an_eviction().holds({3, 1, 300, 0}, 5, 390, 450);
  EXPECT_EQ(story.verdict().of(Checker::overlap).violations, 1U);
}

TEST(OverlapChecker, EndsTheExcuseASecondAfterTheEntryIsGoneIfThereIsContact) {
  // The deadlines keep moving, so there was contact with the store.
  Story late = an_eviction();
  for (std::int64_t at = 200; at <= 4300; at += 100) late.still_valid(kFirst, at);
  expect_only(late.verdict(), Checker::overlap);
  Story in_time = an_eviction();
  for (std::int64_t at = 200; at <= 1000; at += 100) in_time.still_valid(kFirst, at);
  expect_fine(in_time.verdict());
}

TEST(OverlapChecker, LetsTheEvictedBelieveUntilItsDeadlineWithoutContact) {
  Story story = an_eviction();
  for (std::int64_t at = 200; at <= 2900; at += 100) story.client(kFirst, at, Kind::valid, 3000);
  expect_fine(story.verdict());
  expect_only(story.still_valid(kFirst, 3100).verdict(), Checker::overlap);
}

TEST(OverlapChecker, DoesNotCountTheTimeAnEvictedProcessWasStopped) {
  Story story = an_eviction();
  story.driver(150, Kind::paused, {}, 1).driver(5150, Kind::resumed, {}, 1);
  expect_fine(story.client(kFirst, 5200, Kind::valid, 5300).verdict());
  expect_only(story.client(kFirst, 7300, Kind::valid, 7400).verdict(), Checker::overlap);
}

Story a_lost_one() {
  Story story;
  story.takes(kFirst, 0, 10).client(kFirst, 100, Kind::valid, 150);
  return story.client(kFirst, 160, Kind::lost, -1, static_cast<int>(Errc::lock_lost));
}

TEST(RevivalChecker, LetsALossBeTheEnd) {
  expect_fine(
      a_lost_one().client(kFirst, 170, Kind::invalid).client(kFirst, 180, Kind::release).verdict());
}

TEST(RevivalChecker, SeesAValidLockThatWasLost) {
  expect_only(a_lost_one().client(kFirst, 161, Kind::valid, 162).verdict(), Checker::revival);
}

TEST(RevivalChecker, SeesAValidLockThatWasNotValidBefore) {
  Story story;
  story.takes(kFirst, 0, 10).client(kFirst, 20, Kind::invalid);
  expect_only(story.still_valid(kFirst, 21).verdict(), Checker::revival);
}

TEST(RevivalChecker, SeesWhatTheClientItselfNoticed) {
  expect_only(a_lost_one().client(kFirst, 200, Kind::revived).verdict(), Checker::revival);
}

TEST(RevivalChecker, SeesALossThatNobodyIsToldOf) {
  Story story;
  story.takes(kFirst, 0, 10).client(kFirst, 2000, Kind::invalid);
  expect_fine(Story(story).client(kFirst, 2900, Kind::release).verdict());
  expect_fine(Story(story)
                  .client(kFirst, 2500, Kind::lost, -1, static_cast<int>(Errc::lock_lost))
                  .client(kFirst, 4000, Kind::release)
                  .verdict());
  expect_fine(Story(story)
                  .driver(2100, Kind::paused, {}, 1)
                  .driver(3900, Kind::resumed, {}, 1)
                  .client(kFirst, 4000, Kind::release)
                  .verdict());
  expect_only(story.client(kFirst, 4000, Kind::release).verdict(), Checker::revival);
}

TEST(RevivalChecker, LetsTheSameClientHoldAgainWithAnotherOp) {
  expect_fine(a_lost_one().holds({1, 2, 200, 0}, 165, 170, 180).verdict());
}

}  // namespace
}  // namespace baton::chaos
