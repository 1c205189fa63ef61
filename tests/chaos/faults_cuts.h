// Cuts the connection of a client at the n-th message, for every n. This is the part that all
// stores share.
#pragma once

#include "chaos/faults.h"
#include "support/eventually.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace baton::chaos {

// Where a connection is cut.
struct Cut {
  int n = 1;          // at the n-th message
  bool done = false;  // true: the store has received the message, and its answer is lost; false:
                      // the message is lost
  std::string text() const {
    return "message " + std::to_string(n) + (done ? " answered in vain" : " lost");
  }
};

// One cut, with its own client and lock. Derived classes implement arm() and wait_cut().
class CutCase {
 public:
  static constexpr const char* kRoot = "/cuts";

  CutCase(const FaultyStore& store, Cut cut)
      : cut_(cut),
        session_(store.session),
        proxy_(store.ports.at(static_cast<std::size_t>(cut.n) % store.ports.size())),
        client_(connect_quietly(store.url(proxy_.host(), kRoot), store.session, "cut")) {}
  virtual ~CutCase() = default;

  virtual void arm(const Cut& cut) = 0;
  virtual bool wait_cut(std::chrono::milliseconds limit) = 0;
  void arm() { arm(cut_); }
  bool is_cut() { return wait_cut(std::chrono::milliseconds(0)); }
  void heal() { proxy_.heal(); }

  const Cut& cut() const noexcept { return cut_; }
  const std::string& name() const noexcept { return name_; }
  DistributedMutex mutex() { return client_.mutex(name_); }
  std::chrono::milliseconds granted_session() const { return client_.session().timeout; }
  std::chrono::milliseconds session() const { return session_; }

 protected:
  test::Proxy& proxy() { return proxy_; }

 private:
  const Cut cut_;
  const std::chrono::milliseconds session_;
  const std::string name_ = fresh_root().substr(1) + "/a/b";
  test::Proxy proxy_;
  Client client_;
};

// All cuts on one store. C: its subclass of CutCase.
template <class C>
class Cuts {
 public:
  explicit Cuts(FaultyStore store)
      : store_(std::move(store)),
        observer_(
            connect_quietly(store_.url(store_.hosts(), C::kRoot), store_.session, "observer")) {}

  // Runs `body` for all cuts at the same time: for each of the first `most` messages, once with the
  // message lost, and once with its answer lost. `body` returns whether the cut had happened when
  // its calls were complete. Some of the last cuts must come too late: otherwise there are more
  // messages than those that were cut. On a slow machine heartbeats count as messages, too.
  template <class Body>
  void for_each(int most, Body body) {
    std::atomic<int> cut{0};
    std::atomic<int> too_late{0};
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < 2 * most; ++i) {
        threads.emplace_back([&, where = Cut{1 + i / 2, i % 2 == 1}] {
          SCOPED_TRACE(where.text());
          try {
            C it(store_, where);
            const bool happened = body(it);
            cut += happened;
            too_late += !happened && where.n > most - 2;
          } catch (const std::exception& e) {
            ADD_FAILURE() << e.what();
          }
        });
      }
    }
    std::printf("[          ] %d of %d cuts came in the middle\n", cut.load(), 2 * most);
    EXPECT_GT(cut, 0);
    EXPECT_GT(too_late, 0) << "there are more than " << most << " messages: cut those, too";
  }

  void acquire_of_a_new_lock(int most) {
    for_each(most, [this](C& it) {
      it.arm();
      auto lock = it.mutex().acquire({.timeout = test::kLong});
      const bool happened = it.is_cut();
      EXPECT_TRUE(it.wait_cut(test::kLong)) << "at the latest a heartbeat";
      expect_held(it, lock);
      lock.release(test::kLong);
      expect_free(it, lock.token());
      return happened;
    });
  }

  void acquire_behind_a_holder(int most) {
    for_each(most, [this](C& it) {
      history::Holds holds;
      auto held = observer_.mutex(it.name()).acquire({.timeout = test::kLong});
      const auto begin = test::boot_now();
      it.arm();
      auto next = std::async(std::launch::async, [&] {
        auto lock = it.mutex().acquire({.timeout = test::kLong});
        return std::pair(std::move(lock), test::boot_now());
      });
      EXPECT_TRUE(in_line(it, 2));
      holds.push_back({begin, test::boot_now(), held.token()});
      held.release(test::kLong);
      auto [lock, granted] = next.get();
      const bool happened = it.is_cut();
      EXPECT_TRUE(it.wait_cut(test::kLong)) << "at the latest a heartbeat";
      expect_held(it, lock);
      holds.push_back({granted, test::boot_now(), lock.token()});
      EXPECT_TRUE(exclusive_and_ordered(holds));
      lock.release(test::kLong);
      expect_free(it, lock.token());
      return happened;
    });
  }

  // Also cuts what the client sends after the first cut to find out where its entry is.
  void acquire_and_a_second_cut(int most, int second) {
    for_each(most, [this, second](C& it) {
      it.arm();
      std::atomic<bool> first{false};
      std::jthread again([&] {
        if (!it.wait_cut(test::kLong)) return;
        it.arm({second, it.cut().n % 2 == 0});
        first = true;
      });
      auto lock = it.mutex().acquire({.timeout = test::kLong});
      const bool happened = first;
      again.join();
      EXPECT_TRUE(it.wait_cut(test::kLong)) << "at the latest a heartbeat";
      expect_held(it, lock);
      lock.release(test::kLong);
      expect_free(it, lock.token());
      return happened;
    });
  }

  void acquire_that_is_given_up(int most) {
    for_each(most, [this](C& it) {
      auto held = observer_.mutex(it.name()).acquire({.timeout = test::kLong});
      it.arm();
      const auto result = it.mutex().acquire_result({.timeout = std::chrono::milliseconds(200)});
      const bool happened = it.is_cut();
      EXPECT_EQ(result.has_value() ? Errc{} : result.error().errc(), Errc::timeout);
      EXPECT_TRUE(in_line(it, 1));
      held.release(test::kLong);
      it.heal();
      expect_free(it, held.token());
      return happened;
    });
  }

  void release(int most) {
    for_each(most, [this](C& it) {
      auto lock = it.mutex().acquire({.timeout = test::kLong});
      it.arm();
      EXPECT_NO_THROW(lock.release(test::kLong));
      const bool happened = it.is_cut();
      it.heal();
      expect_free(it, lock.token());
      return happened;
    });
  }

  void dropped_lock(int most) {
    for_each(most, [this](C& it) {
      auto lock = it.mutex().acquire({.timeout = test::kLong});
      const auto token = lock.token();
      it.arm();
      lock = Lock();
      EXPECT_TRUE(in_line(it, 0));
      const bool happened = it.is_cut();
      it.heal();
      expect_free(it, token);
      return happened;
    });
  }

 private:
  // Waits until `count` entries are in the queue. An entry whose answer was lost would stay there.
  ::testing::AssertionResult in_line(const C& it, std::size_t count) {
    return test::eventually(
        std::to_string(count) + " in line for " + it.name(),
        [&] { return observer_.inspect(it.name()).entries.size() == count; },
        store_.session + store_.grace + std::chrono::seconds(1));
  }
  // Our client holds the lock, and no other entry exists.
  void expect_held(const C& it, Lock& lock) {
    EXPECT_TRUE(lock.valid());
    EXPECT_NO_THROW(lock.verify(test::kLong));
    ASSERT_TRUE(in_line(it, 1));
    EXPECT_EQ(observer_.inspect(it.name()).entries.at(0).token, lock.token());
  }
  // The lock is free: no entry is left while the client still runs, and the next acquire is
  // granted.
  void expect_free(C& it, std::uint64_t last_token) {
    EXPECT_TRUE(in_line(it, 0));
    const auto next = it.mutex().acquire({.timeout = test::kLong});
    EXPECT_GT(next.token(), last_token);
    EXPECT_EQ(it.granted_session(), it.session());
  }

  const FaultyStore store_;
  Client observer_;  // its connections are not cut
};

}  // namespace baton::chaos
