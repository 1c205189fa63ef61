#include "interop/pair.h"

#include "support/eventually.h"

#include <chrono>
#include <utility>
#include <vector>

namespace baton::interop {

using test::eventually;

void PairTest::SetUp() {
  InteropTest::SetUp();
  if (HasFatalFailure()) return;
  place_.persistent_parents = GetParam().other == Library::kazoo;
  onlooker_ = start_onlooker();  // it only reads, so kazoo works with Curator, too
  one_ = start(GetParam().one, "one");
  other_ = start(GetParam().other, "other");
}

void PairTest::start_again(std::unique_ptr<Contender>& contender) {
  const auto library = &contender == &one_ ? GetParam().one : GetParam().other;
  contender = start(library, contender->who());
}

void PairTest::the_holder_keeps_the_other_out() {
  keeps_out(*one_, *other_);
  keeps_out(*other_, *one_);
  EXPECT_TRUE(eventually("no entry is left", [&] { return queue(*onlooker_).empty(); }));
}

void PairTest::release_wakes_the_other() {
  for (auto [holder, waiter] : {std::pair(one_.get(), other_.get()), {other_.get(), one_.get()}}) {
    ASSERT_EQ(holder->ask("try"), "GRANTED") << holder->who();
    const auto token = holder->token();
    EXPECT_EQ(queue(*onlooker_), std::vector{token}) << "the token is the server's own number";
    wait_behind(1, *waiter, *onlooker_);
    EXPECT_EQ(queue(*onlooker_).front(), token);
    EXPECT_EQ(holder->ask("release"), "RELEASED");
    expect_granted(*waiter);
    EXPECT_EQ(queue(*onlooker_), std::vector{waiter->token()});
    EXPECT_EQ(waiter->ask("release"), "RELEASED");
  }
}

void PairTest::who_waits_first_is_served_first() {
  const auto holder = start(GetParam().one, "holder");
  for (auto [first, second] : {std::pair(one_.get(), other_.get()), {other_.get(), one_.get()}}) {
    ASSERT_EQ(holder->ask("try"), "GRANTED");
    wait_behind(1, *first, *onlooker_);
    wait_behind(2, *second, *onlooker_);
    if (GetParam().one == Library::baton) {
      EXPECT_EQ(queue(*holder), queue(*onlooker_)) << "both must see the same queue";
    }
    EXPECT_EQ(holder->ask("release"), "RELEASED");
    expect_granted(*first);
    const auto token = first->token();
    EXPECT_TRUE(second->silent()) << second->who() << " came in beside " << first->who();
    EXPECT_EQ(first->ask("release"), "RELEASED");
    expect_granted(*second);
    EXPECT_GT(second->token(), token);
    EXPECT_EQ(second->ask("release"), "RELEASED");
  }
}

void PairTest::a_waiter_that_leaves_makes_nobody_a_holder() {
  const auto holder = start(GetParam().one, "holder");
  for (const bool killed : {false, true}) {
    for (auto [leaver, last] : {std::pair(&other_, &one_), {&one_, &other_}}) {
      const std::string who = (*leaver)->who() + (killed ? " is killed" : " gives up");
      ASSERT_EQ(holder->ask("try"), "GRANTED") << who;
      wait_behind(1, **leaver, *onlooker_, killed ? "wait" : "acquire 3000");
      wait_behind(2, **last, *onlooker_);
      if (killed) {
        (*leaver)->kill_hard();
        start_again(*leaver);
      } else {
        const auto words = (*leaver)->answer();
        EXPECT_EQ(words.empty() ? "nothing" : words[0], "REFUSED") << who;
      }
      EXPECT_TRUE(eventually(who, [&] { return queue(*onlooker_).size() == 2; }));
      const auto before = monotonic_now();
      EXPECT_EQ(holder->ask("release"), "RELEASED") << who;
      expect_granted(**last);
      EXPECT_GT((*last)->stamp(), before) << who << ", and the last is granted beside the holder";
      EXPECT_EQ((*last)->ask("release"), "RELEASED") << who;
    }
  }
}

void PairTest::a_killed_holder_is_followed_when_its_session_ends() {
  for (auto [victim, heir] : {std::pair(&other_, &one_), {&one_, &other_}}) {
    ASSERT_EQ((*victim)->ask("try"), "GRANTED") << (*victim)->who();
    wait_behind(1, **heir, *onlooker_);
    const auto killed = monotonic_now();
    (*victim)->kill_hard();
    expect_granted(**heir);
    // The timeout of the session runs from the last contact, which is at most a heartbeat (a third
    // of the timeout) before the kill. The server may end the session a little late.
    const auto took = std::chrono::nanoseconds((*heir)->stamp() - killed);
    EXPECT_GE(took, kSession / 2) << "too early: the holder had not lost its session";
    EXPECT_LE(took, kSession + setting_.late);
    EXPECT_EQ((*heir)->ask("release"), "RELEASED");
    start_again(*victim);
  }
}

}  // namespace baton::interop
