// The engine with the ZooKeeper session under random faults: connections break, sessions end, and
// operators interfere. The seed determines everything.
#include "fake_zk_process.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace baton::zk {
namespace {

using namespace std::chrono_literals;

class Storm {
 public:
  Storm(std::uint64_t seed, std::size_t watch_budget) : random_(seed) {
    zk_.timeout = 2s;
    for (int n = 0; n < 3; ++n) {
      processes_.push_back(std::make_unique<FakeZkProcess>(zk_, judge_, n, watch_budget));
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

  // Reconnects all clients. Every waiter must get the lock, and no entry may stay behind.
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
  // Ends a session only when the server has received nothing from it for the session timeout.
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
    FakeZkProcess& process = *processes_[pick(processes_.size())];
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
  HoldJudge judge_;
  std::set<std::int64_t> expired_;
  std::vector<std::unique_ptr<FakeZkProcess>> processes_;
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

TEST(ZkStormTest, ExclusionTokensAndTidinessSurvive) { storms(1, 100, Watches::kBudget); }

// Two watches fill a session, so most watches use further sessions.
TEST(ZkStormTest, TheSameWithWatchesOnFurtherSessions) { storms(1'001, 50, 80); }

}  // namespace
}  // namespace baton::zk
