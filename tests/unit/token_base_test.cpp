// The token base: its record, its sum with a token, and how an engine checks it with each session.
#include "common/seam/token_base.h"

#include "common/client/client_impl.h"
#include "common/client/engine.h"
#include "common/seam/lock_name.h"
#include "common/base/thread_loop.h"
#include "manual_loop.h"
#include "scripted_engine.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::internal {
namespace {

using namespace std::chrono_literals;

TEST(TokenBase, RecordIsReadAsItWasWritten) {
  for (const std::uint64_t base :
       {std::uint64_t{1}, std::uint64_t{1'800'000'000'000'000}, kMaxTokenBase}) {
    EXPECT_EQ(decode_token_base(encode_token_base(base)), base);
  }
  for (const char* bad : {"", "baton/1", "baton/1 ", "baton/1 -1", "baton/1 1 ", "baton/2 1", "1",
                          "baton/1 4611686018427387905"}) {
    EXPECT_FALSE(decode_token_base(bad)) << bad;
    const auto read = read_token_base(bad, "/app/~token_base");
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().errc(), Errc::store_error);
  }
}

TEST(TokenBase, SumStaysInASignedColumn) {
  EXPECT_EQ(add_token_base(0, 7).value(), 7U);
  EXPECT_EQ(add_token_base(0, UINT64_MAX).value(), UINT64_MAX) << "as the store gave it";
  EXPECT_EQ(add_token_base(kMaxTokenBase, 7).value(), kMaxTokenBase + 7);
  EXPECT_EQ(add_token_base(kMaxTokenBase, kMaxToken - kMaxTokenBase).value(), kMaxToken);
  const auto above = add_token_base(kMaxTokenBase, kMaxToken - kMaxTokenBase + 1);
  ASSERT_FALSE(above);
  EXPECT_EQ(above.error().errc(), Errc::store_error);
  EXPECT_FALSE(add_token_base(1, UINT64_MAX).has_value());
}

using TokenBaseEngine = ScriptedEngine;

TEST_F(TokenBaseEngine, NothingIsAskedOfASessionBeforeItsBaseIsChecked) {
  EXPECT_EQ(script_.wanted, kBase);
  const auto outcome = acquire();
  EXPECT_FALSE(opened_);
  EXPECT_EQ(engine_->session(), nullptr);
  EXPECT_EQ(script_.joins, 0);
  base_is(kBase);
  ASSERT_TRUE(opened_ && *opened_);
  ASSERT_TRUE(outcome->hold);
  EXPECT_EQ(outcome->hold->token(), kBase + 1);
  EXPECT_EQ(engine_->info().token_base, kBase);
}

TEST_F(TokenBaseEngine, RefusedSessionSaysGoodbye) {
  base_is(kBase + 1);
  ASSERT_TRUE(opened_ && !*opened_);
  EXPECT_EQ(opened_->error().errc(), Errc::invalid_argument);
  ASSERT_TRUE(script_.bye);
  bool closed = false;
  loop_.step([&] { engine_->close([&](const Result<Done>&) { closed = true; }); });
  EXPECT_FALSE(closed) << "the goodbye is still under way";
  auto bye = *std::exchange(script_.bye, std::nullopt);
  loop_.step([&] { bye(Done{}); });
  EXPECT_TRUE(closed);
  EXPECT_FALSE(script_.bye) << "one goodbye";
}

TEST_F(TokenBaseEngine, LaterSessionOfAnotherBaseEndsWhoWaits) {
  base_is(kBase);
  const auto held = acquire();
  ASSERT_TRUE(held->hold);
  end_session();
  EXPECT_FALSE(held->hold->valid());
  EXPECT_EQ(script_.opens, 2);
  const auto waits = acquire();
  base_is(std::uint64_t{0});  // the store was wiped, and then first used by a client without a base
  ASSERT_TRUE(waits->error);
  EXPECT_EQ(waits->error->errc(), Errc::invalid_argument) << waits->error->what();
  EXPECT_EQ(script_.joins, 1);
  // The engine tries again, and accepts the session with the right base.
  const auto later = acquire();
  loop_.advance(10s);
  EXPECT_EQ(script_.opens, 3);
  base_is(kBase);
  ASSERT_TRUE(later->hold);
}

TEST_F(TokenBaseEngine, SessionThatEndsBeforeItsBaseIsKnownIsReplaced) {
  auto stale = *std::exchange(script_.base, std::nullopt);
  end_session();
  EXPECT_FALSE(opened_);
  loop_.advance(10s);
  EXPECT_EQ(script_.opens, 2);
  loop_.step([&] { stale(kBase); });
  EXPECT_FALSE(opened_) << "an answer of the session that ended";
  base_is(kBase);
  EXPECT_TRUE(opened_ && *opened_);
}

TEST_F(TokenBaseEngine, BaseThatCannotBeReadNowIsAskedForAgain) {
  base_is(Error(Errc::connection_failed, "no server answered"));
  EXPECT_FALSE(opened_);
  loop_.advance(10s);
  EXPECT_EQ(script_.opens, 2);
  base_is(kBase);
  EXPECT_TRUE(opened_ && *opened_);
}

TEST_F(TokenBaseEngine, CloseBeforeTheBaseIsKnownSaysGoodbye) {
  bool closed = false;
  loop_.step([&] { engine_->close([&](const Result<Done>&) { closed = true; }); });
  ASSERT_TRUE(script_.bye);
  base_is(kBase);  // too late
  EXPECT_EQ(engine_->session(), nullptr);
  auto bye = *std::exchange(script_.bye, std::nullopt);
  loop_.step([&] { bye(Done{}); });
  EXPECT_TRUE(closed);
}

TEST_F(TokenBaseEngine, TokenBeyondTheLastIsNotGranted) {
  base_is(kBase);
  script_.token = kMaxToken - kBase + 1;
  const auto outcome = acquire();
  EXPECT_FALSE(outcome->hold);
  ASSERT_TRUE(outcome->error);
  EXPECT_EQ(outcome->error->errc(), Errc::store_error) << outcome->error->what();
  EXPECT_EQ(script_.withdrawals, 1) << "no entry stays";
  script_.token = kMaxToken - kBase;
  const auto last = acquire();
  ASSERT_TRUE(last->hold);
  EXPECT_EQ(last->hold->token(), kMaxToken);
}

// A store that opens a session and is silent after that.
class FallsSilent final : public Backend {
 public:
  explicit FallsSilent(Script& script) : script_(script) {}
  Loop& loop() noexcept override { return loop_; }
  void open(SessionListener&, Answer<std::unique_ptr<Session>> answer) override {
    loop_.defer([this, answer = std::move(answer)]() mutable {
      answer(std::unique_ptr<Session>(std::make_unique<ScriptedSession>(loop_, script_)));
    });
  }
  void stop() noexcept override { loop_.stop(); }
  std::string where() const override { return "a silent store"; }

 private:
  Script& script_;
  ThreadLoop loop_{real_clock(), [](std::string_view) {}};
};

// close() may wait 3 s for the store. connect() may wait only for the rest of its own timeout.
TEST(TokenBaseConnect, IsBoundedWhenTheStoreFallsSilentBeforeItTellsTheBase) {
  Script script;
  const auto begin = BootClock::now();
  const auto client =
      ClientImpl::open(std::make_unique<FallsSilent>(script), {.connect_timeout = 200ms},
                       std::make_shared<LogQueue>([](LogLevel, std::string_view) {}), 5);
  const auto took = BootClock::now() - begin;
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().errc(), Errc::connection_failed);
  EXPECT_EQ(script.wanted, 5U) << "the base was asked for";
  EXPECT_GE(took, 200ms);
  EXPECT_LT(took, 1500ms) << "it waited for a goodbye that never came";
}

}  // namespace
}  // namespace baton::internal
