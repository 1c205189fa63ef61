// ScriptedEngine: a test fixture with an Engine whose sessions answer when the test decides.
#pragma once

#include "common/client/engine.h"
#include "common/seam/lock_name.h"
#include "manual_loop.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::internal {

// The requests that a session has received. The test answers them.
struct Script {
  std::optional<Answer<std::uint64_t>> base;  // not answered yet
  std::optional<Answer<Done>> bye;
  std::uint64_t wanted = 0;
  std::uint64_t token = 1;  // the token of the next join
  int opens = 0;
  int joins = 0;
  int withdrawals = 0;
};

class ScriptedSession final : public Session {
 public:
  ScriptedSession(Loop& loop, Script& script) : loop_(loop), script_(script) {}

  void join(const LockName&, Nonce nonce, Answer<Standing> answer) override {
    ++script_.joins;
    Standing standing;
    standing.token = script_.token;
    standing.view.tickets.push_back({1, "mine", nonce});
    loop_.defer([standing, answer = std::move(answer)]() mutable { answer(standing); });
  }
  void look(const LockName&, Nonce, const LookHint&, Answer<Standing>) override {}
  void peek(const LockName&, Answer<bool>) override {}
  WatchId watch(const LockName&, const Ticket&, const WatchFor&, WatchHandler) override {
    return WatchId{1};
  }
  void unwatch(WatchId) override {}
  void withdraw(const LockName&, Nonce, Answer<WithdrawResult> answer) override {
    ++script_.withdrawals;
    loop_.defer([answer = std::move(answer)]() mutable { answer(WithdrawResult{}); });
  }
  void verify(const LockName&, Nonce, Answer<bool>) override {}
  void inspect(const LockName&, Answer<LockSnapshot>) override {}
  void list(std::string_view, Answer<std::vector<std::string>>) override {}
  void evict(const LockName&, std::string_view, Answer<bool>) override {}
  void settle_token_base(std::uint64_t wanted, Answer<std::uint64_t> answer) override {
    script_.wanted = wanted;
    script_.base = std::move(answer);
  }
  void close(Answer<Done> answer) override { script_.bye = std::move(answer); }
  std::shared_ptr<LeaseView> lease() const override { return lease_; }
  SessionInfo info() const override { return {}; }
  std::chrono::milliseconds backstop() const override { return std::chrono::seconds(1); }

 private:
  Loop& loop_;
  Script& script_;
  const std::shared_ptr<LeaseView> lease_ = std::make_shared<LeaseView>();
};

struct Outcome final : AttemptSink {
  bool offer(Result<std::shared_ptr<Hold>> result) noexcept override {
    if (result) {
      hold = *result;
    } else {
      error = result.error();
    }
    return true;
  }
  std::shared_ptr<Hold> hold;
  std::optional<Error> error;
};

// An engine on sessions that the test answers. The fixture is its backend and its host.
class ScriptedEngine : public ::testing::Test, public Backend, public EngineHost {
 protected:
  static constexpr std::uint64_t kBase = 1000;

  ScriptedEngine() {
    engine_ = std::make_unique<Engine>(
        *this, *this, [this](LogLevel, std::string_view line) { log_.emplace_back(line); }, 1,
        kBase);
    loop_.step([&] { engine_->open([this](Result<Done> done) { opened_ = std::move(done); }); });
  }

  void base_is(Result<std::uint64_t> base) {
    ASSERT_TRUE(script_.base) << "the session was not asked";
    auto answer = *std::exchange(script_.base, std::nullopt);
    loop_.step([&] { answer(std::move(base)); });
  }
  void end_session() {
    loop_.step([&] { listener_->session_ended(Errc::session_expired, "by the test"); });
  }
  std::shared_ptr<Outcome> acquire() {
    auto outcome = std::make_shared<Outcome>();
    loop_.step([&] {
      engine_->start(std::make_shared<Attempt>(parse_lock_name("a").value(), false, outcome));
    });
    return outcome;
  }

  // Backend
  Loop& loop() noexcept override { return loop_; }
  void open(SessionListener& listener, Answer<std::unique_ptr<Session>> answer) override {
    ++script_.opens;
    listener_ = &listener;
    loop_.defer([this, answer = std::move(answer)]() mutable {
      answer(std::unique_ptr<Session>(std::make_unique<ScriptedSession>(loop_, script_)));
    });
  }
  void stop() noexcept override {}
  std::string where() const override { return "the script"; }
  // EngineHost
  std::weak_ptr<HoldKeeper> keeper() override { return {}; }
  void hold_granted(const std::shared_ptr<Hold>&) override {}
  void hold_lost(const std::shared_ptr<Hold>& hold) override { announced_.push_back(hold); }
  void on_hold_closed(const std::shared_ptr<Hold>&) override {}
  void metric(const MetricEvent& event, const LockName*) override {
    metrics_.push_back(event.kind);
  }

  ManualLoop loop_;
  Script script_;
  SessionListener* listener_ = nullptr;
  std::optional<Result<Done>> opened_;
  std::vector<std::string> log_;
  std::vector<MetricEvent::Kind> metrics_;
  std::vector<std::shared_ptr<Hold>> announced_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace baton::internal
