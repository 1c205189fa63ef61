// Tests the state machine of one acquisition, event by event.
#include "common/recipe/acquisition.h"

#include <gtest/gtest.h>

#include <utility>

namespace baton::internal {
namespace {

constexpr Nonce kMine{7};
constexpr Nonce kFresh{8};

Ticket ticket(std::uint64_t rank, std::optional<Nonce> ours = std::nullopt) {
  return {rank, "t" + std::to_string(rank), ours};
}

Result<Standing> standing(std::vector<Ticket> tickets, std::size_t omitted = 0) {
  Standing s;
  s.token = 50;
  s.view = {std::move(tickets), omitted};
  return s;
}

Result<Standing> first_in_line(Nonce me = kMine) { return standing({ticket(50, me)}); }
Result<Standing> behind_one() { return standing({ticket(40), ticket(50, kMine)}); }
Result<Standing> behind_many() { return standing({ticket(40), ticket(50, kMine)}, 3); }
Result<Standing> nowhere() { return standing({}); }
Error outage() { return {Errc::connection_failed, "no answer"}; }
Error refusal() { return {Errc::permission_denied, "no"}; }

// An attempt whose join is under way.
Acquisition joining() {
  Acquisition a(false);
  EXPECT_TRUE(a.on_session(kMine).join);
  return a;
}

// An attempt that waits behind one ticket.
Acquisition waiting() {
  Acquisition a = joining();
  EXPECT_TRUE(a.on_joined(behind_one(), kFresh, true).watch.has_value());
  return a;
}

TEST(Acquisition, FreeLockIsGrantedWithTheJoin) {
  Acquisition a = joining();
  const Actions actions = a.on_joined(first_in_line(), kFresh, true);
  EXPECT_TRUE(actions.grant);
  EXPECT_FALSE(actions.look);
  EXPECT_EQ(a.token(), 50u);
  EXPECT_TRUE(a.done());
}

TEST(Acquisition, WatchesThePredecessorAndOnlyIt) {
  Acquisition a = joining();
  const Actions actions = a.on_joined(behind_many(), kFresh, true);
  ASSERT_TRUE(actions.watch.has_value());
  EXPECT_EQ(actions.watch->rank, 40u);
  EXPECT_EQ(a.ahead(), 4u);
  EXPECT_EQ(a.state(), Acquisition::State::waiting);
}

TEST(Acquisition, PredecessorGoneIsTheGrantOnlyIfItWasTheOnlyOneAndSurely) {
  {
    Acquisition a = waiting();
    EXPECT_TRUE(a.on_predecessor(WatchEvent::gone, true).grant);
  }
  {
    Acquisition a = waiting();
    const Actions actions = a.on_predecessor(WatchEvent::look, true);
    EXPECT_FALSE(actions.grant);
    EXPECT_TRUE(actions.look);
  }
  {
    Acquisition a = waiting();
    EXPECT_FALSE(a.on_predecessor(WatchEvent::gone, false).grant);  // the lease has run out
  }
  {
    Acquisition a = joining();
    a.on_joined(behind_many(), kFresh, true);
    EXPECT_FALSE(a.on_predecessor(WatchEvent::gone, true).grant);
    EXPECT_EQ(a.state(), Acquisition::State::looking);
  }
}

TEST(Acquisition, LostAnswerToTheJoinIsAskedAgainUnderTheSameNonce) {
  Acquisition a = joining();
  EXPECT_TRUE(a.on_joined(outage(), kFresh, true).pause);
  const Actions again = a.on_pause_over();
  EXPECT_TRUE(again.join);
  EXPECT_FALSE(again.withdraw.has_value());
  EXPECT_EQ(a.nonce(), kMine);
}

TEST(Acquisition, PermanentErrorFailsAtOnceAndWithdraws) {
  Acquisition a = joining();
  const Actions actions = a.on_joined(refusal(), kFresh, true);
  ASSERT_TRUE(actions.fail.has_value());
  EXPECT_EQ(actions.fail->errc(), Errc::permission_denied);
  EXPECT_EQ(actions.withdraw, kMine);  // the store may have created the ticket
}

TEST(Acquisition, EvictedWaiterJoinsAgainAsANewTicket) {
  Acquisition a = waiting();
  EXPECT_TRUE(a.on_own_ticket().look);
  const Actions actions = a.on_looked(nowhere(), kFresh, true);
  EXPECT_TRUE(actions.join);
  EXPECT_EQ(actions.withdraw, kMine);
  EXPECT_EQ(a.nonce(), kFresh);
}

TEST(Acquisition, NothingIsGrantedWithoutALease) {
  Acquisition a = joining();
  const Actions actions = a.on_joined(first_in_line(), kFresh, false);
  EXPECT_FALSE(actions.grant);
  EXPECT_TRUE(actions.pause);
  EXPECT_TRUE(a.on_pause_over().look);
}

TEST(Acquisition, CutOffReadingIsLookedAtAgain) {
  Acquisition a = joining();
  const Actions actions = a.on_joined(standing({ticket(50, kMine)}, 17), kFresh, true);
  EXPECT_FALSE(actions.grant);
  EXPECT_TRUE(actions.look);
}

TEST(Acquisition, WhatHappensDuringALookIsLookedAtAfterIt) {
  Acquisition a = waiting();
  EXPECT_TRUE(a.on_backstop().look);
  EXPECT_FALSE(a.on_own_ticket().look);  // one look at a time
  EXPECT_TRUE(a.on_looked(behind_one(), kFresh, true).look);
  EXPECT_TRUE(a.on_looked(behind_one(), kFresh, true).watch.has_value());
}

TEST(Acquisition, SessionEndWhileWaitingJoinsAgainInTheNext) {
  Acquisition a = waiting();
  const Actions ended = a.on_session_ended();
  EXPECT_FALSE(ended.withdraw.has_value());  // the store removes the ticket with the session
  EXPECT_FALSE(a.has_ticket());
  EXPECT_TRUE(a.on_session(kFresh).join);
  EXPECT_EQ(a.nonce(), kFresh);
}

TEST(Acquisition, LateAnswersAfterTheEndMeanNothing) {
  Acquisition a = joining();
  ASSERT_TRUE(a.on_give_up({Errc::timeout, "late"}).fail.has_value());
  EXPECT_FALSE(a.on_joined(first_in_line(), kFresh, true).grant);
  EXPECT_FALSE(a.on_predecessor(WatchEvent::gone, true).grant);
  EXPECT_FALSE(a.on_session(kFresh).join);
  EXPECT_FALSE(a.on_pause_over().join);
  EXPECT_FALSE(a.on_give_up({Errc::cancelled, "again"}).fail.has_value());
}

TEST(Acquisition, GivingUpWithdrawsWhateverMayHaveBeenSent) {
  Acquisition nothing_sent(false);
  EXPECT_FALSE(nothing_sent.on_give_up({Errc::timeout, ""}).withdraw.has_value());
  Acquisition sent = joining();  // the join is not answered yet
  EXPECT_EQ(sent.on_give_up({Errc::timeout, ""}).withdraw, kMine);
  Acquisition parked = waiting();
  EXPECT_EQ(parked.on_give_up({Errc::cancelled, ""}).withdraw, kMine);
}

TEST(Acquisition, OneAttemptReadsBeforeItWrites) {
  Acquisition busy(true);
  EXPECT_TRUE(busy.on_session(kMine).peek);
  const Actions actions = busy.on_peeked(true);
  EXPECT_EQ(actions.fail->errc(), Errc::timeout);
  EXPECT_FALSE(actions.withdraw.has_value());

  Acquisition overtaken(true);
  overtaken.on_session(kMine);
  EXPECT_TRUE(overtaken.on_peeked(false).join);
  const Actions lost = overtaken.on_joined(behind_one(), kFresh, true);
  EXPECT_EQ(lost.fail->errc(), Errc::timeout);
  EXPECT_EQ(lost.withdraw, kMine);

  Acquisition cut(true);
  cut.on_session(kMine);
  EXPECT_TRUE(cut.on_peeked(outage()).pause);
  EXPECT_TRUE(cut.on_pause_over().peek);
  EXPECT_EQ(cut.on_peeked(refusal()).fail->errc(), Errc::permission_denied);
}

}  // namespace
}  // namespace baton::internal
