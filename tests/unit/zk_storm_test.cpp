// The engine and the ZooKeeper session together, through storms: connections break, sessions end,
// operators interfere, at random but repeatably. A seed decides everything.
#include "common/engine.h"
#include "fake_zk_client.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace baton::internal {
namespace {

using namespace std::chrono_literals;

// What must never be.
struct Judge {
  explicit Judge(FakeZk& ensemble) : zk(ensemble) {}
  void granted(const std::shared_ptr<Hold>& hold) {
    auto& last = tokens[hold->name()];
    // Evicted before its turn came, and the news is still on its way: the next one may be first.
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
  FakeZk& zk;
  std::map<LockName, std::uint64_t> tokens;
  std::vector<std::shared_ptr<Hold>> holds;
  std::set<std::uint64_t> evicted;  // by force: until it is noticed only the token protects
  int grants = 0;
};

// One process: the real engine over the real session.
class Process final : public EngineHost, public Backend {
 public:
  Process(FakeZk& zk, Judge& judge, int number, std::size_t watch_budget)
      : zk_(zk), judge_(judge), number_(number), watch_budget_(watch_budget) {
    engine_ = std::make_unique<Engine>(
        *this, *this, [](LogLevel, std::string_view) {}, static_cast<std::uint32_t>(number + 1));
    zk.loop().step([&] { engine_->open([](const Result<Done>&) {}); });
  }
  ~Process() override {
    zk_.loop().step([&] {
      engine_->abandon();
      opening_.reset();
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
    attempt->started = loop().now();
    if (timeout) attempt->deadline = loop().now() + *timeout;
    tries.push_back({attempt, sink});
    zk_.loop().step([&] { engine_->start(attempt); });
  }
  void give_up(std::size_t i) {
    zk_.loop().step([&] { engine_->give_up(tries[i].attempt, Errc::cancelled); });
  }
  void release(const std::shared_ptr<Hold>& hold) {
    zk_.loop().step([&] {
      if (hold->become_released()) engine_->drop(hold, nullptr);
    });
  }
  // Takes out what is settled; true: something is still under way.
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
  Loop& loop() noexcept override { return zk_.loop(); }
  std::string where() const override { return "fake"; }
  void stop() noexcept override {}
  void open(SessionListener& listener, Answer<std::unique_ptr<Session>> answer) override {
    const auto number = ++opens_;
    answer_ = std::move(answer);
    ZkSessionParts parts;
    parts.loop = &zk_.loop();
    parts.make_line = [this](ZkLineListener& l) { return zk_.make_line(l); };
    parts.root = "/app";
    parts.client_id = "process" + std::to_string(number_);
    parts.watch_budget = watch_budget_;
    parts.log = [](LogLevel, std::string_view) {};
    opening_ =
        std::make_unique<ZkSession>(std::move(parts), listener, [this, number](Result<Done> done) {
          zk_.loop().defer([this, number, done = std::move(done)]() mutable {
            if (number == opens_) finish(std::move(done));
          });
        });
    timer_ = zk_.loop().at(zk_.loop().now() + 4s, [this, number] {
      if (number == opens_) finish(Error(Errc::connection_failed, "no server"));
    });
  }

 private:
  void finish(Result<Done> done) {
    if (!answer_) return;
    zk_.loop().cancel(timer_);
    auto session = std::move(opening_);
    auto answer = std::exchange(answer_, nullptr);
    if (done) {
      answer(std::unique_ptr<Session>(std::move(session)));
    } else {
      ++opens_;
      answer(done.error());
    }
  }

  // ---- EngineHost
  std::weak_ptr<HoldKeeper> keeper() override { return {}; }
  void hold_granted(const std::shared_ptr<Hold>& hold) override {
    judge_.granted(hold);
    watch_deadline(hold);
  }
  void hold_lost(const std::shared_ptr<Hold>&) override {}
  void hold_released(const std::shared_ptr<Hold>&) override {}
  void metric(const MetricEvent&, const LockName*) override {}
  // What the loss thread does.
  void watch_deadline(const std::shared_ptr<Hold>& hold) {
    zk_.loop().at(hold->lease().deadline(), [this, hold] {
      if (!hold->is_held()) return;
      if (const Errc due = hold->due_loss(); due == Errc{}) {
        watch_deadline(hold);
      } else if (hold->become_lost(due)) {
        engine_->drop(hold, nullptr);
      }
    });
  }

  FakeZk& zk_;
  Judge& judge_;
  const int number_;
  const std::size_t watch_budget_;
  std::uint64_t opens_ = 0;
  TimerId timer_ = TimerId::none;
  Answer<std::unique_ptr<Session>> answer_;
  std::unique_ptr<ZkSession> opening_;
  std::unique_ptr<Engine> engine_;
};

class Storm {
 public:
  Storm(std::uint64_t seed, std::size_t watch_budget) : random_(seed) {
    zk_.timeout = 2s;
    for (int n = 0; n < 3; ++n) {
      processes_.push_back(std::make_unique<Process>(zk_, judge_, n, watch_budget));
    }
  }

  void blow(int steps) {
    for (int n = 0; n < steps && !::testing::Test::HasFailure(); ++n) {
      one_thing();
      end_sessions();
      judge_.check();
      for (auto& process : processes_) process->sort_out();
    }
  }

  // The wind drops: whoever waits gets his turn, and nothing is left over.
  void calm() {
    bool busy = true;
    for (int n = 0; busy && n < 2'000; ++n) {
      for (std::size_t i = 0; i < zk_.wires(); ++i) {
        if (zk_.wire(i).line_alive() && !zk_.wire(i).connected()) reconnect(zk_.wire(i));
        if (zk_.wire(i).line_alive()) zk_.wire(i).settle();
      }
      zk_.loop().advance(50ms);
      judge_.check();
      busy = false;
      for (auto& process : processes_) {
        busy |= process->sort_out() || !process->engine().idle();
        for (const auto& hold : std::vector(process->mine)) process->release(hold);
      }
    }
    EXPECT_FALSE(busy) << "somebody waits for ever";
    for (const auto& lock : {"a", "b"}) {
      EXPECT_EQ(zk_.children(std::string("/app/") + lock), Texts{}) << "an entry stays";
    }
  }
  int grants() const { return judge_.grants; }

 private:
  std::uint64_t pick(std::uint64_t below) { return random_() % below; }
  template <class T>
  T* any(std::vector<T>& all) {
    return all.empty() ? nullptr : &all[pick(all.size())];
  }
  FakeWire* any_wire(bool connected) {
    std::vector<FakeWire*> all;
    for (std::size_t i = 0; i < zk_.wires(); ++i) {
      auto& wire = zk_.wire(i);
      if (wire.line_alive() && wire.connected() == connected) all.push_back(&wire);
    }
    auto* const found = any(all);
    return found == nullptr ? nullptr : *found;
  }
  std::vector<std::string> entries() {
    std::vector<std::string> all;
    for (const char* lock : {"/app/a", "/app/b"}) {
      for (const auto& child : zk_.children(lock)) all.push_back(lock + ("/" + child));
    }
    return all;
  }
  void reconnect(FakeWire& wire) {
    if (expired_.contains(wire.session())) {
      wire.expire();
    } else if (pick(2) == 0) {
      wire.connect_behind();
    } else {
      wire.connect();
    }
  }
  // The server keeps its word: not before it has heard nothing for T.
  void end_sessions() {
    for (std::size_t i = 0; i < zk_.wires(); ++i) {
      auto& wire = zk_.wire(i);
      if (wire.heard_at() == Time{} || zk_.loop().now() < wire.heard_at() + zk_.timeout) continue;
      if (!expired_.insert(wire.session()).second) continue;
      if (wire.line_alive() && wire.connected()) {
        wire.expire();
      } else {
        zk_.end(wire.session());
      }
    }
  }

  void one_thing() {
    Process& process = *processes_[pick(processes_.size())];
    const auto what = pick(100);
    if (what < 60) {
      if (auto* const wire = any_wire(true)) {
        const bool moved = pick(2) == 0 ? wire->deliver_request() : wire->deliver_answer();
        if (!moved && !wire->deliver_request()) wire->deliver_answer();
      }
    } else if (what < 68) {
      const auto timeout = pick(3) == 0 ? std::nullopt : std::optional<Nanos>(1ms * pick(3'000));
      if (process.tries.size() < 5) process.acquire(pick(3) == 0 ? "b" : "a", timeout);
    } else if (what < 76) {
      if (const auto* const hold = any(process.mine)) process.release(std::shared_ptr(*hold));
    } else if (what < 79) {
      if (!process.tries.empty()) process.give_up(pick(process.tries.size()));
    } else if (what < 82) {
      if (auto* const wire = any_wire(true); wire != nullptr) {
        pick(2) == 0 ? wire->cut() : wire->cut_after_requests();
      }
    } else if (what < 88) {
      if (auto* const wire = any_wire(false)) reconnect(*wire);
    } else if (what < 89) {
      auto all = entries();
      if (const auto* const path = any(all)) zk_.write(*path, "changed");
    } else if (what < 90) {
      auto all = entries();
      if (const auto* const path = any(all)) {
        judge_.evicted.insert(zk_.find(*path)->created_at);
        zk_.remove(*path);
      }
    } else if (what < 91) {
      zk_.reap();
    } else if (what < 93) {
      if (auto* const wire = any_wire(true)) wire->catch_up();
    } else {
      zk_.loop().advance(1ms * pick(pick(20) == 0 ? 2'500 : 60));
    }
  }

  std::mt19937_64 random_;
  ManualLoop loop_;
  FakeZk zk_{loop_};
  Judge judge_{zk_};
  std::set<std::int64_t> expired_;
  std::vector<std::unique_ptr<Process>> processes_;
};

void storms(std::uint64_t first, std::uint64_t count, std::size_t watch_budget) {
  int grants = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Storm storm(seed, watch_budget);
    storm.blow(2'000);
    storm.calm();
    grants += storm.grants();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(grants, static_cast<int>(count) * 10) << "storms in which nothing happens show nothing";
}

TEST(ZkStormTest, ExclusionTokensAndTidinessSurvive) { storms(1, 100, ZkWatches::kBudget); }

// Two watches fill a session, so most are on further ones.
TEST(ZkStormTest, TheSameWithWatchesOnFurtherSessions) { storms(1'001, 50, 80); }

}  // namespace
}  // namespace baton::internal
