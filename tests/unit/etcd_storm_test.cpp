// The engine with the etcd session under random faults: requests are lost or executed late, streams
// break, members fall silent, lag or lose their leader, and operators interfere. The seed
// determines everything except the jitter of reconnects.
#include "fake_etcd_process.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace baton::etcd {
namespace {

using namespace std::chrono_literals;

class Storm {
 public:
  explicit Storm(std::uint64_t seed) : random_(seed) {
    for (int n = 0; n < 3; ++n) {
      processes_.push_back(std::make_unique<FakeEtcdProcess>(etcd_, judge_, n));
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

  // Ends all faults. Every waiter must get the lock, and nothing may stay behind in the store.
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
    loop_.advance(15s);  // late requests have arrived, and their keys were swept
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
    if (what < 10) fate.refuse = CallResult{14, "etcdserver: request timed out"};
    if (what == 10) fate.refuse = CallResult{8, "etcdserver: too many requests"};
    return fate;
  }
  void heal_members() {
    for (std::size_t i = 0; i < etcd_.members(); ++i) etcd_.member(i).no_leader = false;
    loop_.step([&] { etcd_.catch_up(); });
  }

  void one_thing() {
    FakeEtcdProcess& process = *processes_[pick(processes_.size())];
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
      pick(2) == 0 ? process.wire.break_streams(StreamKind::watch) : process.wire.break_streams();
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
  HoldJudge judge_;
  std::vector<std::unique_ptr<FakeEtcdProcess>> processes_;
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
}  // namespace baton::etcd
