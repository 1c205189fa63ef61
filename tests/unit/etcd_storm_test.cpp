// The engine and the etcd session together, through storms: requests are lost or land late, streams
// break, members fall silent, lag or lose their leader, operators interfere, at random but
// repeatably: a seed decides everything but the jitter of reconnects.
#include "common/engine.h"
#include "fake_etcd_client.h"

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
  std::map<LockName, std::uint64_t> tokens;
  std::vector<std::shared_ptr<Hold>> holds;
  std::set<std::uint64_t> evicted;  // by force: until it is noticed only the token protects
  int grants = 0;
};

// One process: the real engine over the real session.
class Process final : public EngineHost, public Backend {
 public:
  Process(FakeEtcd& etcd, Judge& judge, int number) : wire(etcd), etcd_(etcd), judge_(judge) {
    engine_ = std::make_unique<Engine>(
        *this, *this, [](LogLevel, std::string_view) {}, static_cast<std::uint32_t>(number + 1));
    etcd.loop().step([&] { engine_->open([](const Result<Done>&) {}); });
  }
  ~Process() override {
    etcd_.loop().step([&] {
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
    etcd_.loop().step([&] { engine_->start(attempt); });
  }
  void give_up(std::size_t i) {
    etcd_.loop().step([&] { engine_->give_up(tries[i].attempt, Errc::cancelled); });
  }
  void release(const std::shared_ptr<Hold>& hold) {
    etcd_.loop().step([&] {
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

  FakeEtcdWire wire;
  std::vector<Try> tries;
  std::vector<std::shared_ptr<Hold>> mine;

  // ---- Backend
  Loop& loop() noexcept override { return etcd_.loop(); }
  std::string where() const override { return "fake"; }
  void stop() noexcept override {}
  void open(SessionListener& listener, Answer<std::unique_ptr<Session>> answer) override {
    const auto number = ++opens_;
    answer_ = std::move(answer);
    EtcdSessionParts parts;
    parts.link = fake_link_parts(etcd_.loop(), wire, atlas_);
    parts.link.try_timeout = 500ms;
    parts.root = "/app";
    parts.session_timeout = 2s;
    opening_ = std::make_unique<EtcdSession>(
        std::move(parts), listener, [this, number](Result<Done> done) {
          etcd_.loop().defer([this, number, done = std::move(done)]() mutable {
            const bool final = done || !transient(done.error());
            if (number == opens_ && final) finish(std::move(done));
          });
        });
    timer_ = loop().at(loop().now() + 4s, [this, number] {
      if (number == opens_) finish(Error(Errc::connection_failed, "no server"));
    });
  }

 private:
  void finish(Result<Done> done) {
    if (!answer_) return;
    loop().cancel(timer_);
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
    loop().at(hold->lease().deadline(), [this, hold] {
      if (!hold->is_held()) return;
      if (const Errc due = hold->due_loss(); due == Errc{}) {
        watch_deadline(hold);
      } else if (hold->become_lost(due)) {
        engine_->drop(hold, nullptr);
      }
    });
  }

  FakeEtcd& etcd_;
  Judge& judge_;
  EtcdAtlas atlas_;
  std::uint64_t opens_ = 0;
  TimerId timer_ = TimerId::none;
  Answer<std::unique_ptr<Session>> answer_;
  std::unique_ptr<EtcdSession> opening_;
  std::unique_ptr<Engine> engine_;
};

class Storm {
 public:
  explicit Storm(std::uint64_t seed) : random_(seed) {
    for (int n = 0; n < 3; ++n) {
      processes_.push_back(std::make_unique<Process>(etcd_, judge_, n));
      auto& wire = processes_.back()->wire;
      wire.fate = [this](const FakeAsked&) { return fate(); };
      wire.stream_latency = [this] { return Nanos(1ms * (1 + pick(10))); };
    }
  }

  void blow(int steps) {
    for (int n = 0; n < steps && !::testing::Test::HasFailure(); ++n) {
      one_thing();
      judge_.check();
      for (auto& process : processes_) process->sort_out();
    }
  }

  // The wind drops: whoever waits gets his turn, and nothing is left over.
  void calm() {
    for (auto& process : processes_) process->wire.heal();
    heal_members();
    bool busy = true;
    for (int n = 0; busy && n < 1'000; ++n) {
      loop_.advance(50ms);
      judge_.check();
      busy = false;
      for (auto& process : processes_) {
        busy |= process->sort_out() || !process->engine().idle();
        for (const auto& hold : std::vector(process->mine)) process->release(hold);
      }
    }
    EXPECT_FALSE(busy) << "somebody waits for ever";
    loop_.advance(15s);  // what lands late has landed, and is swept
    EXPECT_EQ(etcd_.keys(), Texts{}) << "an entry stays";
    EXPECT_EQ(etcd_.leases().size(), processes_.size()) << "a lease stays";
    EXPECT_EQ(etcd_.watchers(), 0u) << "a watch stays";
  }
  int grants() const { return judge_.grants; }

 private:
  std::uint64_t pick(std::uint64_t below) { return random_() % below; }
  FakeFate fate() {
    const auto what = pick(100);
    FakeFate fate{.there = 1ms * (1 + pick(10)), .back = 1ms * (1 + pick(10))};
    if (what < 3) return lost_request();
    if (what < 6) return lost_answer();
    if (what < 9) return lands_after(1ms * pick(5'000));
    if (what < 10) fate.refuse = EtcdVerdict{14, "etcdserver: request timed out"};
    if (what == 10) fate.refuse = EtcdVerdict{8, "etcdserver: too many requests"};
    return fate;
  }
  void heal_members() {
    for (std::size_t i = 0; i < etcd_.members(); ++i) etcd_.member(i).no_leader = false;
    loop_.step([&] { etcd_.catch_up(); });
  }

  void one_thing() {
    Process& process = *processes_[pick(processes_.size())];
    const std::size_t node = pick(etcd_.members());
    const auto what = pick(100);
    if (what < 50) {
      loop_.advance(1ms * pick(pick(30) == 0 ? 2'500 : 30));
    } else if (what < 60) {
      const auto timeout = pick(3) == 0 ? std::nullopt : std::optional<Nanos>(1ms * pick(3'000));
      if (process.tries.size() < 5) process.acquire(pick(3) == 0 ? "b" : "a", timeout);
    } else if (what < 72) {
      if (!process.mine.empty()) {
        process.release(std::shared_ptr(process.mine[pick(process.mine.size())]));
      }
    } else if (what < 75) {
      if (!process.tries.empty()) process.give_up(pick(process.tries.size()));
    } else if (what < 78) {
      pick(2) == 0 ? process.wire.break_streams(EtcdFlow::watch) : process.wire.break_streams();
    } else if (what < 80) {
      process.wire.silence(node);
    } else if (what < 86) {
      process.wire.silence(node, false);
    } else if (what < 87) {
      pick(2) == 0 ? process.wire.take_down(node) : process.wire.black_hole(node);
    } else if (what < 90) {
      process.wire.bring_up(node);
    } else if (what < 91) {
      etcd_.lag(node);
    } else if (what < 92) {
      etcd_.member(node).no_leader = true;
    } else if (what < 96) {
      heal_members();
    } else if (what < 97) {
      etcd_.compact(etcd_.revision() - static_cast<std::int64_t>(pick(3)));
    } else if (what < 98) {
      auto all = etcd_.keys("/app/");
      if (all.empty()) return;
      const auto key = all[pick(all.size())];
      judge_.evicted.insert(static_cast<std::uint64_t>(etcd_.find(key)->create_revision()));
      loop_.step([&] { etcd_.remove(key); });
    }
  }

  std::mt19937_64 random_;
  ManualLoop loop_;
  FakeEtcd etcd_{loop_, 3};
  Judge judge_;
  std::vector<std::unique_ptr<Process>> processes_;
};

TEST(EtcdStormTest, ExclusionTokensAndTidinessSurvive) {
  constexpr std::uint64_t kStorms = 100;
  int grants = 0;
  for (std::uint64_t seed = 1; seed <= kStorms; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Storm storm(seed);
    storm.blow(1'000);
    storm.calm();
    grants += storm.grants();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(grants, static_cast<int>(kStorms) * 10)
      << "storms in which nothing happens show nothing";
}

}  // namespace
}  // namespace baton::internal
