// Tests the early-loss checker, the allowances, and the measured margins and hand-overs.
#include "chaos/cluster/story.h"

#include <baton/error.h>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;

const Part kFirst{1, 1, 100, 0};
const Part kSecond{2, 1, 200, 0};

constexpr std::uint64_t code(Errc errc) { return static_cast<std::uint64_t>(errc); }

// The last `valid` record is at 100, with deadline 500.
Story a_believer() {
  Story story;
  story.client(kFirst, 0, Kind::asked).client(kFirst, 10, Kind::granted);
  story.client(kFirst, 10, Kind::valid, 400).client(kFirst, 100, Kind::valid, 500);
  return story.present(50, kFirst);
}

TEST(EarlyLossChecker, LetsTheStoreFreeALockAfterTheDeadline) {
  Story story = a_believer().client(kFirst, 500, Kind::lost, -1, code(Errc::lock_lost));
  expect_fine(story.gone(501, kFirst).holds(kSecond, 5, 502, 510).verdict());
}

TEST(EarlyLossChecker, SeesAValidLockWhoseEntryIsGone) {
  Story story = a_believer().gone(99, kFirst);
  expect_only(story.client(kFirst, 105, Kind::release).verdict(), Checker::early_loss);
}

TEST(EarlyLossChecker, SeesAnEntryThatGoesBeforeTheDeadlineOfAKilledHolder) {
  Story story = a_believer().driver(150, Kind::killed, {}, 1);
  expect_only(Story(story).gone(499, kFirst).verdict(), Checker::early_loss);
  expect_fine(story.gone(501, kFirst).verdict());
}

TEST(EarlyLossChecker, SeesAnEntryThatGoesBeforeTheDeadlineOfAStoppedHolder) {
  Story story = a_believer().driver(150, Kind::paused, {}, 1).driver(900, Kind::resumed, {}, 1);
  story.client(kFirst, 901, Kind::invalid);
  expect_only(Story(story).gone(499, kFirst).verdict(), Checker::early_loss);
  expect_fine(story.gone(501, kFirst).verdict());
}

TEST(EarlyLossChecker, SeesTheNextGrantBeforeTheDeadlineIfNobodySawTheEntryGo) {
  Story story = a_believer().driver(150, Kind::killed, {}, 1);
  expect_only(Story(story).holds(kSecond, 5, 450, 460).verdict(), Checker::early_loss);
  expect_fine(story.holds(kSecond, 5, 550, 560).verdict());
}

TEST(EarlyLossChecker, TakesTheStoresWordForAProofThatTheDeadlineWasTooLate) {
  for (const Errc reason : {Errc::session_expired, Errc::evicted}) {
    Story story = a_believer().client(kFirst, 300, Kind::lost, -1, code(reason));
    expect_only(story.gone(290, kFirst).verdict(), Checker::early_loss);
  }
}

TEST(EarlyLossChecker, LetsAClientThatGaveItUpItselfRemoveItsEntry) {
  for (const Errc reason : {Errc::closed, Errc::store_changed}) {
    Story story = a_believer().client(kFirst, 300, Kind::lost, -1, code(reason));
    expect_fine(story.gone(290, kFirst).verdict());
  }
}

TEST(EarlyLossChecker, LetsAReleaseFreeTheLockBeforeTheDeadline) {
  Story story = a_believer().client(kFirst, 110, Kind::release);
  expect_fine(Story(story).gone(111, kFirst).holds(kSecond, 5, 112, 120).verdict());
  expect_only(story.gone(105, kFirst).verdict(), Checker::early_loss);
}

TEST(EarlyLossChecker, AsksNothingOfTheEvicted) {
  Story story = a_believer().evicted(90, kFirst).gone(95, kFirst);
  expect_fine(story.client(kFirst, 300, Kind::lost, -1, code(Errc::evicted)).verdict());
}

TEST(EarlyLossChecker, ForgetsAReadingThatMissedAnEntryWhichWasSeenLater) {
  Story story = a_believer().gone(60, kFirst).present(70, kFirst);
  expect_fine(story.client(kFirst, 110, Kind::release).gone(120, kFirst).verdict());
}

// A leader is stopped and continues, and a lease ends too early. expired: how many leases that
// leader has ended by its own count. -1: there is no such record.
Story a_revoked_lease(int expired = 1) {
  Story story = a_believer().driver(0, Kind::fault, {0, 7, 0, 0}, 0, "pause leader 1");
  story.driver(120, Kind::resumed, {0, 7, 0, 0});
  story.client(kFirst, 300, Kind::lost, -1, code(Errc::evicted));
  if (expired >= 0) {
    story.driver(149, Kind::expired, {0, 7, 0, 0}, static_cast<std::uint64_t>(expired));
  }
  return story.gone(200, kFirst);
}

TEST(Allowances, ExcuseOneCheckerInTheWindowOfTheFaultAndTellOfIt) {
  for (const char* store : {"etcd 3.4.23", "etcd 3.5.16", "etcd 3.5.30"}) {
    JudgeOptions options;
    options.store = store;
    const auto verdict = a_revoked_lease().driver(150, Kind::healed, {0, 7, 0, 0}).verdict(options);
    expect_fine(verdict);
    EXPECT_EQ(verdict.of(Checker::early_loss).excused, 1U);
    EXPECT_NE(verdict.of(Checker::early_loss).first.at(0).find("etcd#15247"), std::string::npos);
  }
}

// That a leader was stopped proves nothing. That it ended leases while another server led is a
// proof.
TEST(Allowances, ExcuseNothingWithoutProofFromTheServer) {
  JudgeOptions options;
  options.store = "etcd 3.4.23";
  expect_only(a_revoked_lease(-1).driver(150, Kind::healed, {0, 7, 0, 0}).verdict(options),
              Checker::early_loss);
}

// Three clients lost an entry early. As many are excused as leases were ended.
TEST(Allowances, ExcuseAsManyClientsAsLeasesWereEnded) {
  JudgeOptions options;
  options.store = "etcd 3.5.30";
  for (const std::uint64_t leases : {1U, 2U, 3U, 9U}) {
    Story story;
    story.driver(0, Kind::fault, {0, 7, 0, 0}, 0, "pause leader 1");
    story.driver(120, Kind::resumed, {0, 7, 0, 0});
    for (std::uint32_t i = 1; i <= 3; ++i) {
      const Part part{i, 1, 10 + i, i};
      story.client(part, 0, Kind::asked).client(part, 10, Kind::granted);
      story.client(part, 100, Kind::valid, 500).present(50, part).gone(200, part);
      story.client(part, 300, Kind::lost, -1, code(Errc::evicted));
    }
    story.driver(149, Kind::expired, {0, 7, 0, 0}, leases);
    const auto verdict = story.driver(150, Kind::healed, {0, 7, 0, 0}).verdict(options);
    const std::size_t excused = std::min<std::size_t>(leases, 3);
    EXPECT_EQ(verdict.of(Checker::early_loss).excused, excused);
    EXPECT_EQ(verdict.of(Checker::early_loss).violations, 3 - excused);
  }
}

// The register refused the write because of a newer holder: both were valid at the same time.
TEST(Allowances, ExcuseAWriteThatTheRegisterRefused) {
  JudgeOptions options;
  Story story = a_revoked_lease().driver(150, Kind::healed, {0, 7, 0, 0});
  story.client(kFirst, 250, Kind::read, -1, 0).client(kFirst, 251, Kind::wrote, -1, 1);
  story.client(kFirst, 252, Kind::valid, 500);
  for (const char* store : {"etcd 3.4.23", "zk 3.9.3"}) {
    options.store = store;
    const auto verdict = story.verdict(options);
    const std::size_t known = options.store == "etcd 3.4.23" ? 1 : 0;
    EXPECT_EQ(verdict.of(Checker::overlap).excused, known);
    EXPECT_EQ(verdict.of(Checker::overlap).violations, 1 - known);
  }
}

TEST(Allowances, ExcuseNothingInOtherStoresOrTimes) {
  for (const char* store : {"zk 3.8.0", ""}) {
    JudgeOptions options;
    options.store = store;
    expect_only(a_revoked_lease().driver(150, Kind::healed, {0, 7, 0, 0}).verdict(options),
                Checker::early_loss);
  }
  JudgeOptions options;
  options.store = "etcd 3.4.23";
  Story late;  // another kind of fault, and a matching fault long before
  late.driver(-9000, Kind::fault, {0, 6, 0, 0}, 0, "pause leader 1");
  late.driver(-8500, Kind::resumed, {0, 6, 0, 0});
  late.driver(-8100, Kind::expired, {0, 6, 0, 0}, 1);
  late.driver(-8000, Kind::healed, {0, 6, 0, 0});
  late.driver(0, Kind::fault, {0, 7, 0, 0}, 0, "pause follower 1");
  late.client(kFirst, 0, Kind::asked).client(kFirst, 10, Kind::granted);
  late.client(kFirst, 10, Kind::valid, 500).present(50, kFirst).gone(200, kFirst);
  expect_only(late.client(kFirst, 300, Kind::lost, -1, code(Errc::evicted)).verdict(options),
              Checker::early_loss);
}

// While the old leader is stopped, it cannot revoke leases.
TEST(Allowances, ExcuseNothingBeforeTheLeaderIsBack) {
  JudgeOptions options;
  options.store = "etcd 3.4.23";
  Story story = a_believer().driver(0, Kind::fault, {0, 7, 0, 0}, 0, "pause leader 1");
  story.client(kFirst, 300, Kind::lost, -1, code(Errc::evicted)).gone(200, kFirst);
  story.driver(400, Kind::resumed, {0, 7, 0, 0}).driver(440, Kind::expired, {0, 7, 0, 0}, 1);
  story.driver(450, Kind::healed, {0, 7, 0, 0});
  expect_only(story.verdict(options), Checker::early_loss);
}

// The store still had the entry when it was released, so it had not taken the entry away.
TEST(Allowances, ExcuseNobodyWhoHadItsEntryUntilItsRelease) {
  JudgeOptions options;
  options.store = "etcd 3.4.23";
  for (const bool confirmed : {false, true}) {
    Story story;
    story.driver(0, Kind::fault, {0, 7, 0, 0}, 0, "pause leader 1");
    story.driver(1, Kind::resumed, {0, 7, 0, 0}).driver(2, Kind::expired, {0, 7, 0, 0}, 9);
    story.holds(kSecond, 5, 20, 30).takes(kFirst, 4, 50).still_valid(kFirst, 60);
    story.client(kFirst, 60, Kind::release);
    story.client(kFirst, 61, confirmed ? Kind::released : Kind::unsure, -1, code(Errc::lock_lost));
    const auto verdict = story.driver(150, Kind::healed, {0, 7, 0, 0}).verdict(options);
    EXPECT_EQ(verdict.of(Checker::tokens).violations, confirmed ? 1U : 0U);
    EXPECT_EQ(verdict.of(Checker::tokens).excused, confirmed ? 0U : 1U);
    EXPECT_EQ(verdict.of(Checker::early_loss).violations, confirmed ? 1U : 0U);
  }
}

// If a hold passes an entry that still exists, no revoked lease explains it.
TEST(Allowances, ExcuseNobodyWhoPassesAnEntryThatIsThere) {
  JudgeOptions options;
  options.store = "etcd 3.4.23";
  Story story;
  story.driver(0, Kind::fault, {0, 7, 0, 0}, 0, "pause leader 1");
  story.driver(1, Kind::resumed, {0, 7, 0, 0}).driver(2, Kind::expired, {0, 7, 0, 0}, 9);
  story.client(kFirst, 0, Kind::asked).present(31, kFirst).gone(60, kFirst);
  story.client({1, 1, 0, 0}, 50, Kind::gave_up, -1, 1);
  story.holds(kSecond, 5, 30, 40).driver(150, Kind::healed, {0, 7, 0, 0});
  expect_only(story.verdict(options), Checker::fifo);
}

// Allowances cover only four checkers. No bug of a store excuses a lock that is valid after its
// loss, a write with an old token, or a call that does not return.
TEST(Allowances, NameAnIssueAndNeverTouchTheRegister) {
  for (const Allowance& allowance : known_bugs()) {
    EXPECT_NE(allowance.issue.find_first_of("#-"), std::string_view::npos);
    EXPECT_TRUE(allowance.fault != "" || allowance.issue == "ZOOKEEPER-4785");
    EXPECT_TRUE(allowance.checker == Checker::overlap || allowance.checker == Checker::early_loss ||
                allowance.checker == Checker::tokens || allowance.checker == Checker::fifo);
  }
}

// Three holds are released and seen gone. Later a server shows some of their entries again
// (`ghosts`).
Story a_server_that_forgets(int ghosts) {
  const std::vector<Part> all{{1, 1, 100, 0}, {2, 1, 200, 0}, {3, 1, 300, 0}};
  Story story;
  std::int64_t at = 0;
  for (const Part& part : all) {
    story.holds(part, at, at + 10, at + 20).present(at + 12, part).gone(at + 25, part);
    at += 30;
  }
  for (int i = 0; i < ghosts; ++i) {
    story.present(1000, all[static_cast<std::size_t>(i)]);
    story.gone(1100, all[static_cast<std::size_t>(i)]);
  }
  return story;
}

TEST(Holes, AreProvenByEntriesThatComeBackTogether) {
  JudgeOptions options;
  options.store = "zk 3.8.0";
  expect_fine(a_server_that_forgets(0).verdict(options));
  const auto verdict = a_server_that_forgets(2).verdict(options);
  expect_fine(verdict);
  EXPECT_EQ(verdict.of(Checker::fifo).excused, 1U);
  // One entry alone proves nothing: the others may have passed it. Two prove nothing in a store
  // without this bug.
  expect_only(a_server_that_forgets(1).verdict(options), Checker::fifo);
  options.store = "etcd 3.4.23";
  expect_only(a_server_that_forgets(2).verdict(options), Checker::fifo, 2);
}

// One more client is told at 601 that its entry is missing, and a reading shows the same.
Story and_one_is_told(Story story) {
  const Part told{4, 1, 400, 0};
  story.client(told, 500, Kind::asked).client(told, 510, Kind::granted);
  story.client(told, 510, Kind::valid, 900).client(told, 600, Kind::valid, 900);
  story.client(told, 601, Kind::lost, -1, code(Errc::evicted));
  return story.present(550, told).gone(610, told);
}

TEST(Holes, ExcuseThoseWhomTheServerTold) {
  const Story story = and_one_is_told(a_server_that_forgets(2));
  JudgeOptions options;
  for (const char* store : {"zk 3.8.0", "zk 3.8.4", "etcd 3.4.23"}) {
    options.store = store;
    const auto found = story.verdict(options).of(Checker::early_loss);
    EXPECT_EQ(found.violations, options.store == "zk 3.8.0" ? 0U : 1U);
    EXPECT_EQ(found.excused, options.store == "zk 3.8.0" ? 1U : 0U);
  }
}

// Server 2 has had wrong data since `began`, and noticed it at `noticed`.
Story& strays(Story& story, std::int64_t began, std::int64_t noticed) {
  return story.driver(noticed, Kind::stray, {}, 2, {}, began);
}

TEST(Strays, ExcuseThoseWhomTheyToldFromTheirStartUntilTheyAreMended) {
  JudgeOptions options;
  options.store = "zk 3.8.0";
  const auto early_loss = [&](const Story& story) {
    const auto found = story.verdict(options).of(Checker::early_loss);
    EXPECT_EQ(found.violations + found.excused, 1U);
    return found.violations;
  };
  EXPECT_EQ(early_loss(and_one_is_told({})), 1U);
  Story known = and_one_is_told({});
  strays(known, 100, 2000);
  EXPECT_EQ(early_loss(known), 0U);
  EXPECT_EQ(known.verdict(options).of(Checker::fifo).excused, 1U);  // it is listed
  Story mended = and_one_is_told({});
  strays(mended, 100, 300).driver(400, Kind::mended, {}, 2);
  EXPECT_EQ(early_loss(mended), 0U);  // the client may be told after that
  Story later = and_one_is_told({});
  strays(later, 700, 900).driver(1000, Kind::mended, {}, 2);
  EXPECT_EQ(early_loss(later), 1U);
  Story long_ago = and_one_is_told({});
  strays(long_ago, -9000, -8000).driver(-7000, Kind::mended, {}, 2);
  EXPECT_EQ(early_loss(long_ago), 1U);
  options.store = "etcd 3.4.23";
  EXPECT_EQ(early_loss(known), 1U);
}

TEST(Strays, ExcuseNobodyElse) {
  JudgeOptions options;
  options.store = "zk 3.8.0";
  // The store did not tell this client: the next grant came before its deadline, while it was
  // stopped.
  Story stopped = a_believer();
  strays(stopped, 0, 150);
  stopped.holds(kSecond, 5, 200, 210);
  EXPECT_EQ(stopped.verdict(options).of(Checker::early_loss).violations, 1U);
  Story killed = a_believer();
  strays(killed, 0, 150).driver(150, Kind::killed, {}, 1);
  EXPECT_EQ(killed.gone(200, kFirst).verdict(options).of(Checker::early_loss).violations, 1U);
}

// If a reading lacks an entry that the store still has at its release, a wrong server gave the
// answer.
TEST(Strays, AreNotBelieved) {
  JudgeOptions options;
  options.store = "zk 3.8.0";
  Story story;
  story.takes(kFirst, 0, 10).present(20, kFirst).gone(30, kFirst).releases(kFirst, 40);
  expect_only(story.verdict(options), Checker::early_loss);
  strays(story, 15, 100).driver(200, Kind::mended, {}, 2);
  expect_fine(story.verdict(options));
}

TEST(Strays, MakeOneEntryThatComesBackAHole) {
  JudgeOptions options;
  options.store = "zk 3.8.0";
  Story known = a_server_that_forgets(1);
  strays(known, 900, 1200).driver(1300, Kind::mended, {}, 2);
  expect_fine(known.verdict(options));
  Story later = a_server_that_forgets(1);
  strays(later, 1050, 1200).driver(1300, Kind::mended, {}, 2);
  expect_only(later.verdict(options), Checker::fifo);
}

TEST(Measures, OfMarginsCountFromTheEndOfBelief) {
  Story story = a_believer().client(kFirst, 480, Kind::lost, -1, code(Errc::lock_lost));
  const auto margins = story.gone(900, kFirst).holds(kSecond, 5, 700, 710).verdict().margins;
  ASSERT_EQ(margins.size(), 1U);
  EXPECT_EQ(margins[0].value, 220ms);
  Story killed = a_believer().driver(150, Kind::killed, {}, 1);
  const auto after_kill = killed.gone(900, kFirst).verdict().margins;
  ASSERT_EQ(after_kill.size(), 1U);
  EXPECT_EQ(after_kill[0].value, 400ms);
  Story stopped = a_believer().client(kFirst, 901, Kind::lost, -1, code(Errc::lock_lost));
  const auto after_pause = stopped.gone(600, kFirst).verdict().margins;
  ASSERT_EQ(after_pause.size(), 1U);
  EXPECT_EQ(after_pause[0].value, 100ms);
}

TEST(Measures, OfHandOversCountFromReleaseAndFromLossForThoseWhoWaited) {
  Story story;
  story.holds(kFirst, 0, 10, 20).holds(kSecond, 5, 23, 30);
  story.holds({3, 1, 300, 0}, 40, 41, 50);  // found a free lock
  auto handovers = story.verdict().handovers;
  ASSERT_EQ(handovers.size(), 1U);
  EXPECT_EQ(handovers[0].value, 3ms);
  EXPECT_FALSE(handovers[0].after_loss);
  Story loss = a_believer().client(kFirst, 480, Kind::lost, -1, code(Errc::lock_lost));
  handovers = loss.holds(kSecond, 5, 700, 710).verdict().handovers;
  ASSERT_EQ(handovers.size(), 1U);
  EXPECT_EQ(handovers[0].value, 220ms);
  EXPECT_TRUE(handovers[0].after_loss);
}

TEST(Measures, OfHandOversLeaveOutTheTimeThatAForeignEntryHadTheLock) {
  const auto told = [](std::uint64_t token) {
    Story story;
    story.holds(kFirst, 0, 10, 20).holds(kSecond, 5, 4023, 4030);
    return story.present(6, {0, 0, token, 0}).foreign(8, {0, 0, token, 0}).verdict();
  };
  ASSERT_LT(kFirst.token + 1, kSecond.token);
  EXPECT_TRUE(told(kFirst.token + 1).handovers.empty());
  EXPECT_EQ(told(kFirst.token - 1).handovers.size(), 1U);
  EXPECT_EQ(told(kSecond.token + 1).handovers.size(), 1U);
  expect_fine(told(kFirst.token + 1));
}

}  // namespace
}  // namespace baton::chaos
