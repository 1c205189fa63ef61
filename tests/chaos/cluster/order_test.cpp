// Tests the tokens and fifo checkers: each must object to a wrong history, and to no other.
#include "chaos/cluster/story.h"

namespace baton::chaos {
namespace {

const Part kFirst{1, 1, 100, 0};
const Part kSecond{2, 1, 200, 0};

TEST(TokenChecker, LetsTokensRise) {
  expect_fine(Story()
                  .holds(kFirst, 0, 10, 20)
                  .holds(kSecond, 5, 30, 40)
                  .holds({1, 2, 201, 0}, 35, 50, 60)
                  .verdict());
}

TEST(TokenChecker, SeesATokenThatIsNotGreaterThanOneBefore) {
  expect_fires(Story().holds(kSecond, 0, 10, 20).holds(kFirst, 5, 30, 40).verdict(),
               Checker::tokens);
}

TEST(TokenChecker, SeesATokenGrantedTwice) {
  Story story;
  story.holds(kFirst, 0, 10, 20).holds({2, 1, 100, 0}, 5, 30, 40);
  expect_only(story.verdict(), Checker::tokens);
}

TEST(TokenChecker, SeesATokenGrantedTwiceEvenIfNeverValid) {
  Story story;
  story.holds(kFirst, 0, 10, 20);
  story.client({2, 1, 100, 0}, 5, Kind::asked).client({2, 1, 100, 0}, 30, Kind::granted);
  story.client({2, 1, 100, 0}, 31, Kind::invalid);
  expect_only(story.verdict(), Checker::tokens);
}

TEST(TokenChecker, LetsEachLockHaveTokensOfItsOwn) {
  expect_fine(Story().holds(kSecond, 0, 10, 20).holds({1, 1, 100, 1}, 5, 30, 40).verdict());
}

TEST(TokenChecker, AsksNothingOfAGrantThatWasNeverValid) {
  // The process was stopped between the grant and its record, for longer than the lease.
  Story story;
  story.holds(kSecond, 5, 30, 40);
  story.client(kFirst, 0, Kind::asked).client(kFirst, 50, Kind::granted);
  expect_fine(story.client(kFirst, 51, Kind::invalid).verdict());
}

TEST(TokenChecker, ExcusesWhoWasEvictedBeforeTheWordOfItsGrantCame) {
  Story story;
  story.present(5, kFirst).evicted(8, kFirst).gone(12, kFirst);
  story.holds(kSecond, 5, 15, 40);
  story.takes(kFirst, 0, 50);
  expect_fine(story.verdict());
}

TEST(TokenChecker, LeavesAnEntryThatWasGoneBeforeToEarlyLoss) {
  Story story;
  story.present(5, kFirst).gone(12, kFirst);
  story.holds(kSecond, 5, 15, 40);
  expect_only(story.takes(kFirst, 0, 50).verdict(), Checker::early_loss);
}

TEST(TokenChecker, DoesNotExcuseWhoWasEvictedLater) {
  Story story;
  story.holds(kSecond, 5, 15, 40).takes(kFirst, 0, 50);
  expect_fires(story.present(55, kFirst).evicted(60, kFirst).gone(70, kFirst).verdict(),
               Checker::tokens);
}

TEST(FifoChecker, LetsTheOlderEntryGoFirst) {
  Story story;
  story.present(2, kFirst).present(6, kFirst).present(6, kSecond).present(29, kFirst);
  expect_fine(story.holds(kFirst, 0, 10, 28).holds(kSecond, 5, 30, 40).verdict());
}

TEST(FifoChecker, SeesAGrantPastAnOlderEntryThatIsStillThere) {
  // The older entry was never granted: its client gave up later.
  Story story;
  story.client(kFirst, 0, Kind::asked).present(31, kFirst).gone(60, kFirst);
  story.client({1, 1, 0, 0}, 50, Kind::gave_up, -1, 1);
  expect_only(story.holds(kSecond, 5, 30, 40).verdict(), Checker::fifo);
}

TEST(FifoChecker, LetsAnOlderEntryGoJustBefore) {
  Story story;
  story.client(kFirst, 0, Kind::asked).present(29, kFirst).gone(60, kFirst);
  story.client({1, 1, 0, 0}, 28, Kind::gave_up, -1, 1);
  expect_fine(story.holds(kSecond, 5, 30, 40).verdict());
}

TEST(FifoChecker, SeesAGrantPastAForeignEntry) {
  const Part foreign{0, 0, kFirst.token, 0};
  const auto told = [&](std::int64_t last_seen) {
    Story story;
    story.present(2, foreign).foreign(6, foreign).present(last_seen, foreign);
    return story.gone(60, foreign).holds(kSecond, 5, 30, 40).verdict();
  };
  expect_only(told(31), Checker::fifo);
  expect_fine(told(29));
}

TEST(FifoChecker, LetsYoungerEntriesWaitAndThoseOfOtherLocks) {
  Story story;
  story.present(35, kSecond).present(35, {0, 0, 50, 1});
  expect_fine(story.holds(kFirst, 0, 30, 40).verdict());
}

// The tokens agree with the order of the grants. Only the clock shows the wrong order.
TEST(FifoChecker, SeesByTheClockWhoCameLaterAndWasServedFirst) {
  const Part early{1, 1, 300, 0};
  Story story;
  story.client(early, 0, Kind::asked).present(10, early);  // answered at 12
  story.holds(kSecond, 13, 20, 30);
  story.client(early, 40, Kind::granted).client(early, 40, Kind::valid, 50);
  expect_only(story.releases(early, 45).verdict(), Checker::fifo);
}

TEST(FifoChecker, AsksNothingByTheClockOfWhoAskedBeforeTheOtherWasSeen) {
  const Part early{1, 1, 300, 0};
  Story story;
  story.client(early, 0, Kind::asked).present(10, early);
  story.holds(kSecond, 11, 20, 30);
  story.client(early, 40, Kind::granted).client(early, 40, Kind::valid, 50);
  expect_fine(story.releases(early, 45).verdict());
}

}  // namespace
}  // namespace baton::chaos
