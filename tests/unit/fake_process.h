// One process on any fake store: the real engine on the real session. HoldJudge checks its holds.
#pragma once

#include "common/client/engine.h"
#include "fake_client.h"
#include "fakes/session_opening.h"
#include "manual_loop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace baton::internal {

// Checks that a lock never has two valid holds, and that its tokens grow.
struct HoldJudge {
  void granted(const std::shared_ptr<Hold>& hold) {
    auto& last = tokens[hold->name()];
    // This ticket was evicted while it waited, and its client does not know it yet. So a later
    // ticket may have been granted the lock first.
    if (!evicted.contains(hold->token())) {
      EXPECT_GT(hold->token(), last) << "tokens of a lock grow";
    }
    last = std::max(last, hold->token());
    holds.push_back(hold);
    ++grants;
    check();
  }
  void check() {
    std::map<LockName, int> valid;
    for (const auto& hold : holds) {
      if (!evicted.contains(hold->token()) && hold->valid()) ++valid[hold->name()];
    }
    for (const auto& [name, count] : valid) ASSERT_LE(count, 1) << "two hold " << name.text();
    std::erase_if(holds, [](const auto& hold) { return !hold->is_held(); });
  }
  std::map<LockName, std::uint64_t> tokens;
  std::vector<std::shared_ptr<Hold>> holds;
  // until its client notices the eviction, only the token protects
  std::set<std::uint64_t> evicted;
  int grants = 0;
};

// One process: the real engine on the real session.
class FakeProcess : public EngineHost, public internal::Backend {
 public:
  FakeProcess(ManualLoop& loop, HoldJudge& judge, int number, SessionOpening::Accept accept,
              SessionOpening::Make make)
      : loop_(loop), judge_(judge), opening_(loop, accept, std::move(make)) {
    engine_ = std::make_unique<Engine>(
        *this, *this, [](LogLevel, std::string_view) {}, static_cast<std::uint32_t>(number + 1));
    loop_.step([&] { engine_->open([](const Result<Done>&) {}); });
  }
  ~FakeProcess() override {
    loop_.step([&] {
      engine_->abandon();
      opening_.abandon();
    });
  }

  struct Sink final : AttemptSink {
    bool offer(Result<std::shared_ptr<Hold>> outcome) noexcept override {
      ++offers;
      if (outcome) {
        hold = *outcome;
      } else {
        error = outcome.error().errc();
        what = outcome.error().what();
      }
      return true;
    }
    int offers = 0;
    std::shared_ptr<Hold> hold;
    Errc error{};
    std::string what;
  };
  struct Try {
    std::shared_ptr<Attempt> attempt;
    std::shared_ptr<Sink> sink;
  };

  void acquire(const std::string& lock, std::optional<Nanos> timeout) {
    const auto sink = std::make_shared<Sink>();
    const auto attempt = std::make_shared<Attempt>(lock_name(lock), false, sink);
    attempt->started = loop_.now();
    if (timeout) attempt->deadline = loop_.now() + *timeout;
    tries.push_back({attempt, sink});
    loop_.step([&] { engine_->start(attempt); });
  }
  void give_up(std::size_t i) {
    loop_.step([&] { engine_->give_up(tries[i].attempt, Errc::cancelled); });
  }
  void release(const std::shared_ptr<Hold>& hold) {
    loop_.step([&] {
      if (hold->become_released()) engine_->retire_hold(hold, nullptr);
    });
  }
  // Removes finished attempts and ended holds. Returns true while attempts or holds are left.
  bool sort_out() {
    std::erase_if(tries, [this](const Try& t) {
      if (t.sink->offers == 0) return false;
      EXPECT_EQ(t.sink->offers, 1);
      if (t.sink->hold) {
        mine.push_back(t.sink->hold);
      } else {
        EXPECT_TRUE(t.sink->error == Errc::timeout || t.sink->error == Errc::cancelled)
            << t.sink->what;
      }
      return true;
    });
    std::erase_if(mine, [](const auto& hold) { return !hold->is_held(); });
    return !tries.empty() || !mine.empty();
  }
  Engine& engine() { return *engine_; }

  std::vector<Try> tries;
  std::vector<std::shared_ptr<Hold>> mine;

  // ---- Backend
  Loop& loop() noexcept override { return loop_; }
  std::string where() const override { return "fake"; }
  void stop() noexcept override {}
  void open(SessionListener& listener, Answer<std::unique_ptr<Session>> answer) override {
    opening_.open(listener, std::move(answer));
  }

 private:
  // ---- EngineHost
  std::weak_ptr<HoldKeeper> keeper() override { return {}; }
  void hold_granted(const std::shared_ptr<Hold>& hold) override {
    judge_.granted(hold);
    watch_deadline(hold);
  }
  void hold_lost(const std::shared_ptr<Hold>&) override {}
  void on_hold_closed(const std::shared_ptr<Hold>&) override {}
  void metric(const MetricEvent&, const LockName*) override {}
  // Declares a hold lost at its deadline, as LossThread does.
  void watch_deadline(const std::shared_ptr<Hold>& hold) {
    loop_.at(hold->lease().deadline(), [this, hold] {
      if (!hold->is_held()) return;
      if (const Errc due = hold->due_loss(); due == Errc{}) {
        watch_deadline(hold);
      } else if (hold->become_lost(due)) {
        engine_->retire_hold(hold, nullptr);
      }
    });
  }

  ManualLoop& loop_;
  HoldJudge& judge_;
  SessionOpening opening_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace baton::internal
