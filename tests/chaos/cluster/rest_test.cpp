// Tests the progress, leaks, register and form checkers: each must object to a wrong history, and
// to no other.
#include "chaos/cluster/story.h"

#include <baton/error.h>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;

const Part kFirst{1, 1, 100, 0};
const Part kSecond{2, 1, 200, 0};

constexpr std::uint64_t code(Errc errc) { return static_cast<std::uint64_t>(errc); }

JudgeOptions quick() {
  JudgeOptions options;
  options.progress_bound = 1s;
  options.call_slack = 100ms;
  return options;
}

TEST(ProgressChecker, LetsEverybodyGoOnAfterTheFaults) {
  Story story;
  story.holds(kFirst, 0, 10, 20).driver(100, Kind::calm).holds(kSecond, 50, 900, 910);
  expect_fine(story.verdict(quick()));
}

TEST(ProgressChecker, SeesALockThatIsNotGrantedAgain) {
  Story story;
  story.holds(kFirst, 0, 10, 20).driver(100, Kind::calm);
  story.client(kSecond, 50, Kind::asked);
  story.client({2, 1, 0, 0}, 900, Kind::gave_up, -1, code(Errc::cancelled));
  expect_only(story.verdict(quick()), Checker::progress);
}

TEST(ProgressChecker, SeesALockThatIsGrantedAgainTooLate) {
  Story story;
  story.driver(100, Kind::calm).holds(kSecond, 50, 1200, 1210);
  expect_only(story.verdict(quick()), Checker::progress, 2);  // the lock, and the acquire
}

TEST(ProgressChecker, SeesALockThatNobodyAsksForAnyMore) {
  Story story;
  story.holds(kFirst, 0, 10, 20).driver(100, Kind::calm).driver(2000, Kind::healed);
  expect_only(story.verdict(quick()), Checker::progress);
}

TEST(ProgressChecker, SeesACallThatNeverReturns) {
  Story story;
  story.driver(100, Kind::calm).holds(kFirst, 150, 160, 200).client(kSecond, 170, Kind::asked);
  expect_only(Story(story).driver(300, Kind::healed).verdict(quick()), Checker::progress);
  // A call whose process is killed need not return, unless it had waited too long before.
  expect_fine(Story(story).driver(300, Kind::killed, {}, 2).verdict(quick()));
  expect_only(story.driver(1300, Kind::killed, {}, 2).verdict(quick()), Checker::progress);
}

TEST(ProgressChecker, SeesATimeoutThatIsNotKept) {
  Story story;
  story.holds(kFirst, 0, 10, 20).client(kSecond, 0, Kind::asked, 500);
  const Part none{2, 1, 0, 0};
  expect_fine(Story(story).client(none, 590, Kind::gave_up, -1, 1).verdict(quick()));
  expect_only(Story(story).client(none, 610, Kind::gave_up, -1, 1).verdict(quick()),
              Checker::progress);
  // The time in which the process is stopped does not count.
  story.driver(100, Kind::paused, {}, 2).driver(300, Kind::resumed, {}, 2);
  expect_fine(Story(story).client(none, 790, Kind::gave_up, -1, 1).verdict(quick()));
  expect_only(story.client(none, 810, Kind::gave_up, -1, 1).verdict(quick()), Checker::progress);
}

TEST(ProgressChecker, SeesAReleaseThatTakesLongerThanItsTimeout) {
  Story story;
  story.takes(kFirst, 0, 10).client(kFirst, 20, Kind::release, 520);
  expect_fine(Story(story).client(kFirst, 600, Kind::unsure).verdict(quick()));
  expect_only(story.client(kFirst, 700, Kind::unsure).verdict(quick()), Checker::progress);
}

TEST(ProgressChecker, SeesWhoGivesUpBecauseOfTheStore) {
  for (const Errc reason : {Errc::connection_failed, Errc::session_expired, Errc::store_error}) {
    Story story;
    story.holds(kFirst, 0, 10, 20).client(kSecond, 0, Kind::asked);
    story.client({2, 1, 0, 0}, 30, Kind::gave_up, -1, code(reason));
    expect_only(story.verdict(quick()), Checker::progress);
  }
}

Story counts(std::uint64_t descriptors, std::uint64_t threads) {
  Story story;
  story.holds(kFirst, 10, 20, 30);
  story.client({1, 0, 9, 0}, 0, Kind::counted, 0, 20);
  story.client({1, 0, 90, 0}, 500, Kind::counted, 0, 200, "running");
  story.client({1, 0, threads, 0}, 1000, Kind::counted, 0, descriptors, "idle");
  return story.client({1, 0, 1, 0}, 1100, Kind::counted, 0, 3, "closed");
}

TEST(LeakChecker, ComparesAnIdleProcessWithItsBeginning) {
  expect_fine(counts(20, 9).verdict());
  expect_fine(counts(28, 21).verdict());
  expect_only(counts(29, 9).verdict(), Checker::leaks);
  expect_only(counts(20, 22).verdict(), Checker::leaks);
}

TEST(LeakChecker, SeesWhatIsLeftInTheStore) {
  expect_only(counts(20, 9).driver(2000, Kind::leftover, {}, 0, "entry of lock 3").verdict(),
              Checker::leaks);
}

// One measurement of memory per second, for ten minutes.
Verdict memory_of(double start_mib, double mib_a_minute) {
  std::vector<Record> records;
  const Part part = kFirst;
  for (const Kind kind : {Kind::asked, Kind::granted, Kind::valid, Kind::release}) {
    records.push_back({story_time(0),
                       1,
                       kind,
                       1,
                       0,
                       kind == Kind::asked ? 0 : part.token,
                       story_time(100),
                       0,
                       {}});
  }
  records[0].until = {};
  records[3].until = {};
  for (int second = 0; second <= 600; ++second) {
    // A pool that fills in the first minute is not a leak. Neither is noise.
    const double mib = start_mib + std::min(second, 60) * 0.2 + (second * 7 % 13) * 0.05 +
                       mib_a_minute * second / 60;
    records.push_back({story_time(1000 * second), 1, Kind::counted, 0, 0, 9,
                       std::chrono::nanoseconds(static_cast<std::int64_t>(mib * 1024 * 1024)), 20,
                       "running"});
  }
  return judge(records);
}

TEST(LeakChecker, SeesMemoryThatGrowsAndGrows) {
  expect_fine(memory_of(30, 0));
  expect_only(memory_of(30, 0.5), Checker::leaks);
}

// Reads `value` and writes the next number.
Story& writes(Story& story, const Part& part, std::int64_t at, std::uint64_t value,
              bool accepted = true) {
  story.client(part, at, Kind::read, -1, value);
  return story.client(part, at + 1, Kind::wrote, accepted ? at + 1 : -1, value + 1);
}

Story two_writers() {
  Story story;
  story.holds(kFirst, 0, 10, 20).holds(kSecond, 5, 30, 40);
  return writes(story, kFirst, 12, 0);
}

TEST(RegisterChecker, LetsNumbersFollowEachOther) {
  Story story = two_writers();
  writes(story, kSecond, 32, 1);
  expect_fine(story.driver(100, Kind::read, {}, 2).verdict());
}

TEST(RegisterChecker, SeesALostUpdate) {
  Story story = two_writers();
  expect_only(writes(story, kSecond, 32, 0).verdict(), Checker::reg);
}

TEST(RegisterChecker, SeesAnAcceptedWriteThatIsGoneInTheEnd) {
  Story story = two_writers();
  writes(story, kSecond, 32, 1);
  expect_only(story.driver(100, Kind::read, {}, 1).verdict(), Checker::reg);
}

TEST(RegisterChecker, SeesANumberOutOfNowhere) {
  Story story = two_writers();
  expect_only(writes(story, kSecond, 32, 2).verdict(), Checker::reg);
}

TEST(RegisterChecker, LetsAKilledProcessHaveWrittenWithoutARecord) {
  Story story = two_writers();
  const Part third{3, 1, 150, 0};
  story.takes(third, 0, 22).client(third, 23, Kind::read, -1, 1);
  story.client(third, 24, Kind::valid, 26);
  writes(story, kSecond, 32, 2);
  expect_fires(Story(story).verdict(), Checker::reg);
  story.driver(25, Kind::killed, {}, 3);
  EXPECT_EQ(story.verdict().of(Checker::reg).violations, 0U);
}

TEST(RegisterChecker, SeesAnOlderTokenAcceptedAfterANewer) {
  Story story;
  story.holds(kFirst, 0, 10, 20).holds(kSecond, 5, 30, 40);
  writes(story, kSecond, 32, 0);
  expect_only(writes(story, kFirst, 50, 1).verdict(), Checker::reg);
}

TEST(RegisterChecker, LetsALateWriteBeRefusedButNotThatOfAValidHolder) {
  Story story = two_writers();
  writes(story, kSecond, 32, 1);
  expect_fine(writes(story, kFirst, 50, 1, false).verdict());
  expect_only(writes(story, kSecond, 34, 2, false).verdict(), Checker::overlap);
}

TEST(FormChecker, LetsOnlyTheKilledHaveACutOffLine) {
  Story story;
  story.holds(kFirst, 0, 10, 20).driver(50, Kind::killed, {}, 1);
  JudgeOptions options;
  options.damage = {{"client1.history", 7, 1, true}};
  expect_fine(story.verdict(options));
  options.damage = {{"client2.history", 7, 2, true}};
  expect_only(story.verdict(options), Checker::form);
  options.damage = {{"client1.history", 7, 1, false}};
  expect_only(story.verdict(options), Checker::form);
}

TEST(FormChecker, SeesHistoriesThatMakeNoSense) {
  expect_only(Story().verdict(), Checker::form);  // nothing was granted
  expect_only(Story().holds(kFirst, 15, 10, 20).verdict(), Checker::form);
  expect_only(Story().holds(kFirst, 0, 10, 20).still_valid({1, 1, 101, 0}, 15).verdict(),
              Checker::form);
  expect_only(Story().holds(kFirst, 0, 10, 20).client(kFirst, 15, Kind::stop).verdict(),
              Checker::form, 3);
  expect_only(Story().holds(kFirst, 0, 10, 20).client(kFirst, 30, Kind::valid, 40).verdict(),
              Checker::form);
}

}  // namespace
}  // namespace baton::chaos
