// The connection breaks at every single request of an acquire and of a release, once before the
// server gets it and once after: the outcome is the same as if nothing had happened.
#include "chaos/zk_faults.h"

#include "support/boot_clock.h"
#include "support/eventually.h"

#include <future>
#include <string>
#include <utility>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::boot_now;
using test::Direction;
using test::eventually;
using test::Intervals;
using test::kLong;
using test::Proxy;

class ZkFaultsCuts : public ZkFaults {
 protected:
  // One cut, with a client and a root of its own.
  struct Case {
    Case(int request, bool delivered)
        : n(request),
          deliver(delivered),
          proxy(zk().client_port(request % zk().size())),
          client(connect_quietly(proxy.host(), "/" + root, "cut")) {}

    void arm() { proxy.cut_at_frame(Direction::kToServer, n, deliver, test::zk_requests); }
    bool is_cut() { return proxy.wait_cut(Direction::kToServer, 0ms); }
    DistributedMutex mutex() { return client.mutex("a/b"); }
    // The same lock for clients without a root.
    std::string name() const { return root + "/a/b"; }

    const int n;
    const bool deliver;
    const std::string root = fresh_zk_root().substr(1);
    Proxy proxy;
    Client client;
  };

  // All at once: the first n requests, each lost on its way there, and each with its answer lost.
  // body: whether the cut had happened when what it does was done. The last cuts must come too
  // late, or there are requests that were not cut; heartbeats on a slow machine count as well.
  template <class Body>
  void for_each_cut(int most, Body body) {
    std::atomic<int> cut{0};
    std::atomic<int> too_late{0};
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 2 * most; ++i) {
        threads.emplace_back([&, i] {
          const int n = 1 + i / 2;
          SCOPED_TRACE("request " + std::to_string(n) + (i % 2 == 0 ? " lost" : " answered"));
          try {
            Case it(n, i % 2 == 1);
            const bool happened = body(it);
            cut += happened;
            too_late += !happened && n > most - 2;
          } catch (const std::exception& e) {
            ADD_FAILURE() << e.what();
          }
        });
      }
    }
    std::printf("[          ] %d of %d cuts came in the middle\n", cut.load(), 2 * most);
    EXPECT_GT(cut, 0);
    EXPECT_GT(too_late, 0) << "there are more than " << most << " requests: cut those, too";
  }

  // So many in line, and for good: an entry whose answer was lost would stay.
  ::testing::AssertionResult in_line(const Case& it, std::size_t count) {
    return eventually(
        std::to_string(count) + " in line for " + it.name(),
        [&] { return observer_->inspect(it.name()).entries.size() == count; },
        kZkTimeout + kZkTick * 3 / 2 + 1s);
  }

  // The lock is really ours, and ours alone.
  void expect_held(const Case& it, Lock& lock) {
    EXPECT_TRUE(lock.valid());
    EXPECT_NO_THROW(lock.verify(kLong));
    ASSERT_TRUE(in_line(it, 1));
    EXPECT_EQ(observer_->inspect(it.name()).entries.at(0).token, lock.token());
  }
  // It is not: nobody is in line while the client lives on, and the next one is granted.
  void expect_free(Case& it, std::uint64_t last_token) {
    EXPECT_TRUE(in_line(it, 0));
    const auto next = it.mutex().acquire({.timeout = kLong});
    EXPECT_GT(next.token(), last_token);
    EXPECT_EQ(it.client.session().timeout, kZkTimeout);
  }

  void SetUp() override {
    ZkFaults::SetUp();
    if (IsSkipped()) return;
    observer_ = std::make_unique<Client>(connect_quietly(zk().hosts(), "", "observer"));
  }
  void TearDown() override { observer_.reset(); }

  std::unique_ptr<Client> observer_;  // its connections are not cut
};

TEST_F(ZkFaultsCuts, AnAcquireOfANewLockSurvivesACutAtEveryRequest) {
  for_each_cut(12, [this](Case& it) {
    it.arm();
    auto lock = it.mutex().acquire({.timeout = kLong});
    const bool happened = it.is_cut();
    EXPECT_TRUE(it.proxy.wait_cut(Direction::kToServer)) << "at the latest a heartbeat";
    expect_held(it, lock);
    lock.release(kLong);
    expect_free(it, lock.token());
    return happened;
  });
}

TEST_F(ZkFaultsCuts, AnAcquireBehindAHolderSurvivesACutAtEveryRequest) {
  for_each_cut(10, [this](Case& it) {
    Intervals intervals;
    auto held = observer_->mutex(it.name()).acquire({.timeout = kLong});
    const auto begin = boot_now();
    it.arm();
    auto next = std::async(std::launch::async, [&] {
      auto lock = it.mutex().acquire({.timeout = kLong});
      return std::pair(std::move(lock), boot_now());
    });
    EXPECT_TRUE(in_line(it, 2));
    intervals.add({begin, boot_now(), held.token()});
    held.release(kLong);
    auto [lock, granted] = next.get();
    const bool happened = it.is_cut();
    EXPECT_TRUE(it.proxy.wait_cut(Direction::kToServer)) << "at the latest a heartbeat";
    expect_held(it, lock);
    intervals.add({granted, boot_now(), lock.token()});
    EXPECT_TRUE(intervals.exclusive_and_ordered());
    lock.release(kLong);
    expect_free(it, lock.token());
    return happened;
  });
}

// Whatever the client does after the first cut to find out where it stands is cut, too.
TEST_F(ZkFaultsCuts, AnAcquireSurvivesASecondCutWhileItRecovers) {
  for (int second = 1; second <= 4; ++second) {
    for_each_cut(12, [this, second](Case& it) {
      it.arm();
      std::jthread again([&] {
        if (!it.proxy.wait_cut(Direction::kToServer)) return;
        it.proxy.cut_at_frame(Direction::kToServer, second, it.n % 2 == 0, test::zk_requests);
      });
      auto lock = it.mutex().acquire({.timeout = kLong});
      const bool happened = it.is_cut();
      again.join();
      EXPECT_TRUE(it.proxy.wait_cut(Direction::kToServer)) << "at the latest a heartbeat";
      expect_held(it, lock);
      lock.release(kLong);
      expect_free(it, lock.token());
      return happened;
    });
  }
}

TEST_F(ZkFaultsCuts, AnAcquireThatIsGivenUpLeavesNothingWhateverIsCut) {
  for_each_cut(8, [this](Case& it) {
    auto held = observer_->mutex(it.name()).acquire({.timeout = kLong});
    it.arm();
    const auto result = it.mutex().acquire_result({.timeout = 200ms});
    const bool happened = it.is_cut();
    EXPECT_EQ(result.has_value() ? Errc{} : result.error().errc(), Errc::timeout);
    EXPECT_TRUE(in_line(it, 1));
    held.release(kLong);
    it.proxy.heal();
    expect_free(it, held.token());
    return happened;
  });
}

TEST_F(ZkFaultsCuts, AReleaseSurvivesACutAtEveryRequest) {
  for_each_cut(5, [this](Case& it) {
    auto lock = it.mutex().acquire({.timeout = kLong});
    it.arm();
    EXPECT_NO_THROW(lock.release(kLong));
    const bool happened = it.is_cut();
    it.proxy.heal();
    expect_free(it, lock.token());
    return happened;
  });
}

TEST_F(ZkFaultsCuts, ADroppedLockIsFreeWhateverIsCut) {
  for_each_cut(5, [this](Case& it) {
    auto lock = it.mutex().acquire({.timeout = kLong});
    const auto token = lock.token();
    it.arm();
    lock = Lock();
    EXPECT_TRUE(in_line(it, 0));
    const bool happened = it.is_cut();
    it.proxy.heal();
    expect_free(it, token);
    return happened;
  });
}

}  // namespace
}  // namespace baton::chaos
