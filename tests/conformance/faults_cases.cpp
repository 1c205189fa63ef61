// Sessions that end, cuts, and answers that are lost or late. The time of the rig may be virtual
// and passes only in soon(). So calls that wait for time to pass run on other threads, and timeouts
// are long.
#include "conformance/fixture.h"

#include <mutex>
#include <optional>

namespace baton::conformance {
namespace {

constexpr milliseconds kPatient = std::chrono::minutes(30);

// An asynchronous acquire and its outcome.
struct Attempt {
  struct State {
    std::mutex mutex;
    std::optional<Result<Lock>> result;
  };
  explicit Attempt(DistributedMutex mutex, AcquireOptions options = within(kPatient)) {
    mutex.acquire_async(std::move(options), [s = state](Result<Lock> r) {
      const std::lock_guard guard(s->mutex);
      s->result.emplace(std::move(r));
    });
  }
  bool done() const {
    const std::lock_guard guard(state->mutex);
    return state->result.has_value();
  }
  std::optional<Errc> code() const {
    const std::lock_guard guard(state->mutex);
    if (!state->result || state->result->has_value()) return std::nullopt;
    return state->result->error().errc();
  }
  Lock take() {
    const std::lock_guard guard(state->mutex);
    return std::move(*state->result).value();
  }
  std::shared_ptr<State> state = std::make_shared<State>();
};

#define BATON_TAKE(lock, client)                                       \
  Attempt attempt_##lock((client).mutex("a"));                         \
  ASSERT_TRUE(soon("a grant", [&] { return attempt_##lock.done(); })); \
  Lock lock = attempt_##lock.take()

TEST_P(Faults, SessionEndWhileHoldingLosesTheLockForGood) {
  BATON_NEEDS(Can::end_sessions);
  auto client = open();
  BATON_TAKE(lock, client);
  const auto token = lock.token();
  EXPECT_GT(lock.valid_for(), 0ms);
  EXPECT_LT(lock.valid_for(), client.session().timeout);
  rig().end_sessions();
  EXPECT_TRUE(soon("the loss", [&] { return !lock.valid(); }));
  EXPECT_TRUE(soon("lost_token()", [&] { return lock.lost_token().stop_requested(); }));
  EXPECT_EQ(lock.state(), LockState::lost);
  EXPECT_EQ(lock.lost_reason(), Errc::session_expired);
  BATON_TAKE(again, client);
  EXPECT_GT(again.token(), token);
  EXPECT_TRUE(again.valid());
  EXPECT_FALSE(lock.valid()) << "lost is final";
  EXPECT_EQ(entries("a"), 1u);
}

TEST_P(Faults, SessionEndWhileWaitingJoinsAgain) {
  BATON_NEEDS(Can::end_sessions);
  auto one = open();
  auto two = open();
  BATON_TAKE(lock, one);
  Attempt waiting(two.mutex("a"));
  ASSERT_TRUE(in_line("a", 2));
  rig().end_sessions();
  EXPECT_TRUE(soon("the waiter to have it in the end", [&] { return waiting.done(); }));
  EXPECT_FALSE(waiting.code());
  EXPECT_TRUE(waiting.take().valid());
  // The test ended the session, so the client is notified a moment later.
  EXPECT_TRUE(soon("the loss", [&] { return !lock.valid(); }));
}

// When a session ends, calls such as list() and inspect() do not fail: they ask the next session.
TEST_P(Faults, QuestionsOutliveTheSessionThatWasAsked) {
  BATON_NEEDS(Can::end_sessions);
  BATON_NEEDS(Can::cross_processes);  // on virtual time such a call is not retried
  auto client = open();
  std::atomic<bool> over{false};
  std::atomic<int> asked{0};
  std::string error;
  std::thread asker([&] {
    while (!over && error.empty()) {
      try {
        (void)client.list();
        (void)client.inspect("a");
        ++asked;
      } catch (const Error& e) {
        error = e.what();
      }
    }
  });
  for (int round = 0; round < 3; ++round) {
    BATON_TAKE(lock, client);
    rig().end_sessions();
    EXPECT_TRUE(soon("the loss", [&] { return !lock.valid(); }));
    const int before = asked;
    EXPECT_TRUE(soon("the next answers", [&] { return asked > before + 1 || !error.empty(); }));
  }
  over = true;
  asker.join();
  EXPECT_EQ(error, "");
}

TEST_P(Faults, ReentryAfterSessionEndThrows) {
  BATON_NEEDS(Can::end_sessions);
  auto client = open();
  auto mutex = client.mutex("a");
  mutex.lock();
  rig().end_sessions();
  ASSERT_TRUE(soon("the loss", [&] { return !mutex.valid(); }));
  EXPECT_EQ(error_of([&] { mutex.lock(); }), Errc::lock_lost);
  mutex.unlock();
}

// The most important case: valid() becomes false before the store can grant the lock to another
// client.
TEST_P(Faults, CutHolderIsSuspectThenLostBeforeTheStoreFreesIt) {
  BATON_NEEDS(Can::cut);
  auto client = open();
  BATON_TAKE(lock, client);
  rig().cut();
  bool suspect = false;
  bool late = false;
  auto left = lock.valid_for();
  bool grew = false;
  EXPECT_TRUE(soon("the store to drop the entry", [&] {
    suspect = suspect || lock.state() == LockState::suspect;
    const auto now_left = lock.valid_for();
    grew = grew || now_left > left;
    left = now_left;
    const bool free = entries("a") == 0;
    late = late || (free && lock.valid());
    return free;
  }));
  EXPECT_TRUE(suspect) << "never said suspect";
  EXPECT_FALSE(late) << "still valid when the store had freed it";
  EXPECT_FALSE(grew) << "valid_for() grew without contact";
  EXPECT_TRUE(soon("lost_token()", [&] { return lock.lost_token().stop_requested(); }));
  EXPECT_EQ(lock.state(), LockState::lost);
  EXPECT_EQ(lock.valid_for(), 0ms);
  rig().heal();
  BATON_TAKE(again, client);
  EXPECT_GT(again.token(), lock.token());
  EXPECT_FALSE(lock.valid());
}

TEST_P(Faults, ShortCutIsSurvived) {
  BATON_NEEDS(Can::cut);
  auto client = open();
  BATON_TAKE(lock, client);
  rig().cut();
  ASSERT_TRUE(soon("suspect", [&] { return lock.state() == LockState::suspect; }));
  rig().heal();
  EXPECT_TRUE(soon("held again", [&] { return lock.state() == LockState::held; }));
  EXPECT_TRUE(lock.valid());
  EXPECT_FALSE(lock.lost_token().stop_requested());
  EXPECT_EQ(entries("a"), 1u);
}

TEST_P(Faults, OutageIsWaitedOut) {
  BATON_NEEDS(Can::cut);
  auto client = open();
  rig().cut();
  Attempt attempt(client.mutex("a"));
  const auto start = rig().now();
  ASSERT_TRUE(soon("30 s of outage", [&] { return rig().now() - start > 30s; }));
  EXPECT_FALSE(attempt.done());
  rig().heal();
  EXPECT_TRUE(soon("the grant", [&] { return attempt.done(); }));
  EXPECT_FALSE(attempt.code());
  EXPECT_EQ(entries("a"), 1u) << "one entry, whatever was sent";
}

TEST_P(Faults, TimeoutIsKeptWhileCut) {
  BATON_NEEDS(Can::cut);
  auto client = open();
  rig().cut();
  const auto start = rig().now();
  Attempt attempt(client.mutex("a"), within(700ms));
  EXPECT_TRUE(soon("the timeout", [&] { return attempt.done(); }));
  EXPECT_EQ(attempt.code(), Errc::timeout);
  EXPECT_GE(rig().now() - start, 699ms);
  EXPECT_LE(rig().now() - start, 750ms + kSlack);
  rig().heal();
  EXPECT_TRUE(in_line("a", 0));
}

TEST_P(Faults, CancelWhileCutIsHeardAndLeavesNothing) {
  BATON_NEEDS(Can::cut);
  auto one = open();
  auto two = open();
  BATON_TAKE(lock, one);
  std::stop_source stop;
  Attempt attempt(two.mutex("a"), {{}, stop.get_token()});
  ASSERT_TRUE(in_line("a", 2));
  rig().cut();
  stop.request_stop();
  EXPECT_TRUE(soon("cancelled", [&] { return attempt.done(); }));
  EXPECT_EQ(attempt.code(), Errc::cancelled);
  rig().heal();
  EXPECT_TRUE(soon("the waiter's entry to go", [&] { return entries("a") <= 1; }));
}

TEST_P(Faults, UnlockAndDestructorDoNotWaitWhileCut) {
  BATON_NEEDS(Can::cut);
  auto client = open();
  auto mutex = client.mutex("b");
  mutex.lock();
  auto lock = std::make_unique<Lock>(client.mutex("a").acquire(within(kPatient)));
  rig().cut();
  const Stopwatch watch;
  mutex.unlock();
  lock.reset();
  EXPECT_LE(watch.elapsed(), kSlack);
  rig().heal();
  EXPECT_TRUE(in_line("a", 0));
  EXPECT_TRUE(in_line("b", 0));
}

TEST_P(Faults, ReleaseWhileCutTimesOutAndGoesOn) {
  BATON_NEEDS(Can::cut);
  auto client = open();
  BATON_TAKE(lock, client);
  rig().cut();
  auto releasing =
      std::async(std::launch::async, [&] { return error_of([&] { lock.release(500ms); }); });
  ASSERT_TRUE(soon("release() to return",
                   [&] { return releasing.wait_for(0s) == std::future_status::ready; }));
  EXPECT_EQ(releasing.get(), Errc::timeout);
  EXPECT_FALSE(lock.valid());
  EXPECT_FALSE(lock.lost_token().stop_requested());
  rig().heal();
  EXPECT_TRUE(in_line("a", 0));
}

TEST_P(Faults, VerifyWhileCutTimesOutAndKeepsTheLock) {
  BATON_NEEDS(Can::cut);
  auto client = open();
  BATON_TAKE(lock, client);
  rig().cut();
  auto verifying =
      std::async(std::launch::async, [&] { return error_of([&] { lock.verify(300ms); }); });
  ASSERT_TRUE(soon("verify() to return",
                   [&] { return verifying.wait_for(0s) == std::future_status::ready; }));
  EXPECT_EQ(verifying.get(), Errc::timeout);
  rig().heal();
  EXPECT_TRUE(soon("held again", [&] { return lock.state() == LockState::held; }));
}

TEST_P(Faults, OperatorCallsWhileCutAreBounded) {
  BATON_NEEDS(Can::cut);
  auto o = options();
  o.connect_timeout = 500ms;
  auto client = open(std::move(o));
  rig().cut();
  auto calls = std::async(std::launch::async, [&] {
    return std::vector{error_of([&] { (void)client.inspect("a"); }),
                       error_of([&] { (void)client.list(); }),
                       error_of([&] { (void)client.evict("a", "x"); })};
  });
  ASSERT_TRUE(
      soon("the calls to return", [&] { return calls.wait_for(0s) == std::future_status::ready; }));
  for (const auto& code : calls.get()) EXPECT_EQ(code, Errc::timeout);
  rig().heal();
}

TEST_P(Faults, CloseWhileCutIsBounded) {
  BATON_NEEDS(Can::cut);
  auto client = open();
  BATON_TAKE(lock, client);
  Attempt waiting(client.mutex("a"), {});
  ASSERT_TRUE(in_line("a", 2));
  rig().cut();
  const auto start = rig().now();
  auto closing = std::async(std::launch::async, [&] { client.close(); });
  ASSERT_TRUE(
      soon("close() to return", [&] { return closing.wait_for(0s) == std::future_status::ready; }));
  EXPECT_LE(rig().now() - start, 5s + kSlack);
  EXPECT_TRUE(soon("the waiter to hear of it", [&] { return waiting.done(); }));
  EXPECT_EQ(waiting.code(), Errc::closed);
  EXPECT_EQ(lock.lost_reason(), Errc::closed);
  rig().heal();
  EXPECT_TRUE(in_line("a", 0)) << "the session's end takes the entries";
}

// An acquire whose answer is lost finds its own entry again and does not make a second one.
TEST_P(Faults, LostAnswerToTheJoinMakesNoSecondEntry) {
  BATON_NEEDS(Can::lose_answers);
  auto client = open();
  rig().lose_next_answer();
  BATON_TAKE(lock, client);
  EXPECT_TRUE(lock.valid());
  EXPECT_EQ(entries("a"), 1u);
  auto releasing = std::async(
      std::launch::async, [&] { return error_of([&] { lock.release(std::chrono::minutes(1)); }); });
  ASSERT_TRUE(soon("release() to return",
                   [&] { return releasing.wait_for(0s) == std::future_status::ready; }));
  EXPECT_EQ(releasing.get(), std::nullopt);
  EXPECT_TRUE(in_line("a", 0));
}

TEST_P(Faults, LostAnswerAndGivingUpLeavesNothing) {
  BATON_NEEDS(Can::lose_answers);
  auto client = open();
  for (const auto timeout : {1ms, 20ms, 100ms, 1'000ms, 5'000ms}) {
    rig().lose_next_answer();
    Attempt attempt(client.mutex("a"), within(timeout));
    ASSERT_TRUE(soon("an outcome", [&] { return attempt.done(); }));
    if (!attempt.code()) {
      Lock gone = attempt.take();
    }
    EXPECT_TRUE(in_line("a", 0)) << timeout.count() << " ms";
  }
}

TEST_P(Faults, LateAnswerAfterGivingUpLeavesNothing) {
  BATON_NEEDS(Can::lose_answers);
  auto client = open();
  rig().delay_next_answer(3s);
  Attempt attempt(client.mutex("a"), within(500ms));
  ASSERT_TRUE(soon("an outcome", [&] { return attempt.done(); }));
  EXPECT_EQ(attempt.code(), Errc::timeout);
  const auto start = rig().now();
  ASSERT_TRUE(soon("the late answer", [&] { return rig().now() - start > 4s; }));
  EXPECT_TRUE(in_line("a", 0));
  BATON_TAKE(lock, client);
  EXPECT_TRUE(lock.valid());
}

TEST_P(Faults, LostAnswerToTheReleaseStillReleases) {
  BATON_NEEDS(Can::lose_answers);
  auto client = open();
  {
    BATON_TAKE(lock, client);
    rig().lose_next_answer();
  }
  EXPECT_TRUE(in_line("a", 0));
  BATON_TAKE(next, client);
  EXPECT_TRUE(next.valid());
}

TEST_P(Faults, OrderIsKeptOverAShortCut) {
  BATON_NEEDS(Can::cut);
  auto client = open();
  BATON_TAKE(lock, client);
  Attempt second(client.mutex("a"));
  ASSERT_TRUE(in_line("a", 2));
  Attempt third(client.mutex("a"));
  ASSERT_TRUE(in_line("a", 3));
  rig().cut();
  ASSERT_TRUE(soon("suspect", [&] { return lock.state() == LockState::suspect; }));
  { Lock gone = std::move(lock); }
  rig().heal();
  ASSERT_TRUE(soon("the second", [&] { return second.done(); }));
  EXPECT_FALSE(third.done());
  auto held = second.take();
  { Lock gone = std::move(held); }
  ASSERT_TRUE(soon("the third", [&] { return third.done(); }));
  EXPECT_FALSE(third.code());
  EXPECT_TRUE(third.take().valid());
}

}  // namespace
}  // namespace baton::conformance
