// SessionOpener opens one session at a time, within the connect timeout, and answers once.
#include "common/seam/session_opener.h"
#include "manual_loop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace baton::internal {
namespace {

using namespace std::chrono_literals;

// A session that is controlled by the test.
struct Puppet final : Session {
  Puppet(Answer<Done> report, int& living) : opened(std::move(report)), alive(living) {
    ++alive;
    now.timeout = 10s;
    now.state = SessionState::connected;
  }
  ~Puppet() override { --alive; }

  void join(const LockName&, Nonce, Answer<Standing>) override {}
  void look(const LockName&, Nonce, const LookHint&, Answer<Standing>) override {}
  void peek(const LockName&, Answer<bool>) override {}
  WatchId watch(const LockName&, const Ticket&, const WatchFor&, WatchHandler) override {
    return WatchId::none;
  }
  void unwatch(WatchId) override {}
  void withdraw(const LockName&, Nonce, Answer<WithdrawResult>) override {}
  void verify(const LockName&, Nonce, Answer<bool>) override {}
  void inspect(const LockName&, Answer<LockSnapshot>) override {}
  void list(std::string_view, Answer<std::vector<std::string>>) override {}
  void evict(const LockName&, std::string_view, Answer<bool>) override {}
  void settle_token_base(std::uint64_t, Answer<std::uint64_t>) override {}
  void close(Answer<Done>) override {}
  std::shared_ptr<LeaseView> lease() const override { return nullptr; }
  SessionInfo info() const override { return now; }
  std::chrono::milliseconds backstop() const override { return 1s; }

  Answer<Done> opened;
  int& alive;
  SessionInfo now;
};

class SessionOpenerTest : public testing::Test {
 protected:
  SessionOpenerTest() : opener(loop, options(), rules()) {}

  BackendOptions options() {
    BackendOptions options;
    options.session_timeout = 10s;
    options.connect_timeout = 5s;
    options.log = [this](LogLevel, std::string_view text) { log.emplace_back(text); };
    return options;
  }
  SessionOpener::Rules rules() {
    return {[] { return std::string("test:"); },
            [] { return Error(Errc::connection_failed, "silence"); },
            [this](const Error&) { return keeps_trying; }, [this] { ++finished; }};
  }
  SessionOpener::Make make() {
    return [this](Answer<Done> report) {
      auto made = std::make_unique<Puppet>(std::move(report), alive);
      last = made.get();
      return made;
    };
  }
  void open() {
    loop.step([this] {
      opener.open(make(), [this](Result<std::unique_ptr<Session>> answer) {
        ++answers;
        error = answer ? "" : answer.error().what();
        if (answer) session = *std::move(answer);
      });
    });
  }
  void report(Result<Done> result) {
    loop.step([&] { last->opened(std::move(result)); });
  }

  ManualLoop loop;
  std::vector<std::string> log;
  bool keeps_trying = false;
  int finished = 0;
  int alive = 0;
  Puppet* last = nullptr;
  int answers = 0;
  std::string error = "none yet";
  std::unique_ptr<Session> session;
  SessionOpener opener;
};

TEST_F(SessionOpenerTest, AnswersOnceWithTheSessionThatOpened) {
  open();
  EXPECT_EQ(answers, 0);
  report(Done{});
  report(Error(Errc::connection_failed, "later"));
  loop.advance(1h);
  EXPECT_EQ(answers, 1);
  EXPECT_EQ(session.get(), last);
  EXPECT_EQ(finished, 1);
  EXPECT_EQ(loop.timers(), 0U);
  EXPECT_TRUE(log.empty());
}

// The opener handles a failure after the call of the session, because the answer destroys the
// session.
TEST_F(SessionOpenerTest, AFailureDestroysTheSessionOutsideItsOwnCall) {
  open();
  loop.step([&] {
    last->opened(Error(Errc::permission_denied, "no"));
    EXPECT_EQ(alive, 1);
  });
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(error, "no");
}

TEST_F(SessionOpenerTest, WaitsWhileTheSessionKeepsTrying) {
  keeps_trying = true;
  open();
  report(Error(Errc::connection_failed, "first"));
  EXPECT_EQ(answers, 0);
  report(Done{});
  EXPECT_EQ(error, "");
}

// A session that has ended cannot try again, even if the rule says that it keeps trying.
TEST_F(SessionOpenerTest, ASessionThatEndsMeanwhileIsAFailure) {
  keeps_trying = true;
  open();
  last->now.state = SessionState::closed;
  report(Done{});
  EXPECT_EQ(error, "the session ended while it was being opened");
  open();
  last->now.state = SessionState::closed;
  report(Error(Errc::connection_failed, "cut"));
  EXPECT_EQ(error, "cut");
}

TEST_F(SessionOpenerTest, GivesTheReasonBeforeTheCallerStopsWaiting) {
  open();
  loop.advance(3999ms);
  EXPECT_EQ(answers, 0);
  loop.advance(1ms);
  EXPECT_EQ(error, "silence");
  EXPECT_EQ(alive, 0);
}

TEST_F(SessionOpenerTest, ASecondOpenAbandonsTheFirst) {
  open();
  Puppet* const first = last;
  loop.step([&] {
    first->opened(Error(Errc::permission_denied, "of the first"));
    opener.open(make(), [this](Result<std::unique_ptr<Session>> answer) {
      ++answers;
      if (answer) session = *std::move(answer);
    });
  });
  EXPECT_EQ(answers, 0) << "the first session's failure ended the second open()";
  loop.advance(3s);
  report(Done{});
  EXPECT_EQ(answers, 1);
  EXPECT_EQ(alive, 1);
}

TEST_F(SessionOpenerTest, AReplacedSessionIsNotHeard) {
  open();
  loop.step([&] {
    last->opened(Error(Errc::connection_failed, "of the first"));
    opener.replace(make());
  });
  EXPECT_EQ(answers, 0);
  EXPECT_EQ(alive, 1);
  loop.advance(3s);
  report(Done{});
  EXPECT_EQ(session.get(), last);
}

TEST_F(SessionOpenerTest, ASessionThatCannotBeMadeIsAFailure) {
  loop.step([this] {
    opener.open([](Answer<Done>) -> std::unique_ptr<Session> { throw std::runtime_error("full"); },
                [this](Result<std::unique_ptr<Session>> answer) {
                  ++answers;
                  error = answer.error().what();
                });
    EXPECT_EQ(answers, 0) << "answered inside the call";
  });
  EXPECT_EQ(error, "full");
  EXPECT_EQ(loop.timers(), 0U);
}

TEST_F(SessionOpenerTest, SaysOnceThatTheServerGrantsAnotherTimeout) {
  for (int i = 0; i < 2; ++i) {
    open();
    last->now.timeout = 4s;
    report(Done{});
  }
  EXPECT_EQ(log, std::vector<std::string>{"test:: asked for a session timeout of 10000 ms, the "
                                          "server grants 4000 ms"});
}

TEST_F(SessionOpenerTest, FailEndsOnlyWhatWaits) {
  open();
  const auto number = opener.number();
  EXPECT_TRUE(opener.waits(number));
  loop.step([&] { opener.fail(Error(Errc::connection_failed, "bad certificate")); });
  EXPECT_EQ(error, "bad certificate");
  EXPECT_FALSE(opener.waits(number));
  loop.step([&] { opener.fail(Error(Errc::connection_failed, "again")); });
  EXPECT_EQ(answers, 1);
}

}  // namespace
}  // namespace baton::internal
