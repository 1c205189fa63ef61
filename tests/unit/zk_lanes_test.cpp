// Watches beyond the budget of one session use further sessions.
#include "fake_zk_client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace baton::zk {
namespace {

using namespace std::chrono_literals;

// Paths are "/app/job/AAAAAAAA1-lock-0000000000": 34 bytes, and 4 for the length. Two of them fit.
class ZkLanesTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kTwo = 80;

  ZkLanesTest() {
    for (std::uint64_t nonce = 1; nonce <= 9; ++nonce) ann.settled(ann.join(nonce));
    ann.wire().take_log();
  }
  static std::string node(std::uint64_t nonce) {
    return format_entry_id("AAAAAAAA", Nonce{nonce}) + "-lock-000000000" +
           std::to_string(nonce - 1);
  }
  WatchId watch(std::uint64_t nonce, std::optional<Nonce> waiter = {}) {
    WatchId id{};
    loop.step([&] { id = watch_here(nonce, waiter); });
    return id;
  }
  WatchId watch_here(std::uint64_t nonce, std::optional<Nonce> waiter = {}) {
    const Ticket ticket{1, node(nonce), {}};
    return ann.session().watch(lock_name("job"), ticket, {waiter, false}, [=, this](WatchEvent e) {
      events.push_back(std::to_string(nonce) + (e.kind == WatchEvent::gone ? " gone" : " look"));
    });
  }
  void unwatch(WatchId id) {
    loop.step([&] { ann.session().unwatch(id); });
  }
  FakeWire& wire(std::size_t lane) { return zk.wire(lane); }
  std::size_t lanes() const { return zk.wires(); }
  // Connects every lane that can connect, and delivers everything.
  void settle() {
    for (int round = 0; round < 3; ++round) {
      for (std::size_t i = 0; i < lanes(); ++i) {
        if (wire(i).line_alive() && !wire(i).connected()) wire(i).connect();
        wire(i).settle();
      }
    }
  }

  ManualLoop loop;
  FakeZk zk{loop};
  FakeZkClient ann{zk, {.watch_budget = kTwo}};
  Texts events;
};

TEST_F(ZkLanesTest, FurtherSessionIsOpenedBeyondTheBudget) {
  watch(1);
  watch(2);
  EXPECT_EQ(lanes(), 1u);
  watch(3);
  ASSERT_EQ(lanes(), 2u);
  EXPECT_EQ(wire(0).take_log().size(), 2u);
  settle();
  EXPECT_EQ(texts(wire(1).take_log()), Texts{"get_watch /app/job/" + node(3)});
  watch(4);
  EXPECT_EQ(lanes(), 2u);
  watch(5);
  EXPECT_EQ(lanes(), 3u);
  settle();
  for (std::uint64_t nonce = 1; nonce <= 5; ++nonce) zk.remove("/app/job/" + node(nonce));
  settle();
  EXPECT_EQ(events, (Texts{"1 look", "2 look", "3 look", "4 look", "5 look"}));
}

TEST_F(ZkLanesTest, RoomThatBecomesFreeIsUsedAgain) {
  const WatchId first = watch(1);
  watch(2);
  watch(3);
  settle();
  unwatch(first);
  settle();
  watch(4);
  zk.remove("/app/job/" + node(2));
  settle();
  watch(5);
  settle();
  EXPECT_EQ(lanes(), 2u);
  EXPECT_EQ(wire(0).watches(),
            (std::set<std::string>{"/app/job/" + node(4), "/app/job/" + node(5)}));
}

// The events of two sessions have no common order.
TEST_F(ZkLanesTest, EventsOfFurtherSessionsAreNeverAGrant) {
  watch(9);  // own
  watch(1);
  watch(8, Nonce{9});  // in the second session
  settle();
  ASSERT_EQ(wire(1).watches(), std::set<std::string>{"/app/job/" + node(8)});
  zk.remove("/app/job/" + node(8));
  settle();
  EXPECT_EQ(events, Texts{"8 look"});
}

TEST_F(ZkLanesTest, OwnEntryWatchedElsewhereIsNeverAGrant) {
  watch(1);
  watch(8, Nonce{9});
  watch(9);  // own, in the second session
  settle();
  ASSERT_EQ(wire(1).watches(), std::set<std::string>{"/app/job/" + node(9)});
  zk.remove("/app/job/" + node(8));
  settle();
  EXPECT_EQ(events, Texts{"8 look"});
}

TEST_F(ZkLanesTest, BothInTheFirstSessionAreAGrant) {
  watch(9);
  watch(8, Nonce{9});
  watch(1);
  settle();
  zk.remove("/app/job/" + node(8));
  settle();
  EXPECT_EQ(events, Texts{"8 gone"});
}

TEST_F(ZkLanesTest, EndOfAFurtherSessionIsALookForItsWatchersAlone) {
  for (std::uint64_t nonce = 1; nonce <= 4; ++nonce) watch(nonce);
  settle();
  ASSERT_EQ(lanes(), 2u);
  wire(1).expire();
  EXPECT_EQ(events.size(), 2u);
  EXPECT_TRUE(std::find(events.begin(), events.end(), "3 look") != events.end());
  EXPECT_TRUE(std::find(events.begin(), events.end(), "4 look") != events.end());
  EXPECT_TRUE(ann.ended.empty()) << "the session with our entries lives";
  EXPECT_EQ(ann.entries().size(), 9u);
  loop.advance(4s);
  watch(3);
  ASSERT_EQ(lanes(), 3u) << "a new one instead of the dead one";
  settle();
  zk.remove("/app/job/" + node(3));
  settle();
  EXPECT_EQ(events.back(), "3 look");
  EXPECT_EQ(events.size(), 3u);
}

// If a server ends further sessions at once, the client must not open one after the other.
TEST_F(ZkLanesTest, NoNewSessionRightAfterOneEnded) {
  for (std::uint64_t nonce = 1; nonce <= 3; ++nonce) watch(nonce);
  settle();
  wire(1).expire();
  watch(3);
  EXPECT_EQ(lanes(), 2u);
  settle();
  EXPECT_EQ(wire(0).watches().size(), 3u) << "the first one takes more meanwhile";
}

TEST_F(ZkLanesTest, EndedSessionsDoNotCountAgainstTheLimit) {
  watch(1);
  watch(2);
  for (std::size_t n = 1; n <= 20; ++n) {
    loop.advance(4s);
    watch(3);
    settle();
    ASSERT_EQ(lanes(), n + 1);
    ASSERT_EQ(wire(n).watches().size(), 1u);
    wire(n).expire();
    ASSERT_EQ(events.size(), n);
  }
}

TEST_F(ZkLanesTest, EndBeforeItsWatchesWereAnsweredIsALookToo) {
  for (std::uint64_t nonce = 1; nonce <= 3; ++nonce) watch(nonce);
  wire(0).settle();
  wire(1).expire();
  EXPECT_EQ(events, Texts{"3 look"});
}

TEST_F(ZkLanesTest, FurtherSessionThatLosesItsConnectionKeepsItsWatches) {
  for (std::uint64_t nonce = 1; nonce <= 3; ++nonce) watch(nonce, Nonce{9});
  settle();
  wire(1).cut();
  EXPECT_EQ(events, Texts{});
  zk.remove("/app/job/" + node(3));
  settle();
  EXPECT_EQ(events, Texts{"3 look"});
  EXPECT_EQ(ann.resumed, 0) << "that is not our contact with the store";
}

// A holder must learn within a second that its entry is gone, even while this connection is cut.
TEST_F(ZkLanesTest, OwnNodesWatchedOverAConnectionThatIsCutAreLookedAtUntilItIsBack) {
  watch(1, Nonce{9});
  watch(2, Nonce{9});
  watch(3);            // own, in the second session
  watch(4, Nonce{9});  // a predecessor: the second session reports it after the reconnect
  settle();
  ASSERT_EQ(wire(1).watches().size(), 2u);
  wire(1).cut();
  EXPECT_EQ(events, Texts{"3 look"}) << "at once";
  watch(3);
  loop.advance(900ms);
  EXPECT_EQ(events.size(), 1u);
  loop.advance(200ms);
  EXPECT_EQ(events, (Texts{"3 look", "3 look"})) << "again after a second";
  watch(3);
  settle();
  loop.advance(3s);
  settle();
  EXPECT_EQ(events.size(), 2u) << "the connection is back: it tells";
  EXPECT_EQ(wire(1).watches().size(), 2u);
  zk.remove("/app/job/" + node(3));
  settle();
  EXPECT_EQ(events.size(), 3u);
  zk.remove("/app/job/" + node(4));
  settle();
  EXPECT_EQ(events.back(), "4 look");
}

TEST_F(ZkLanesTest, OwnNodesAreLookedAtWhileAFurtherSessionCannotBeOpened) {
  for (std::uint64_t nonce = 1; nonce <= 3; ++nonce) watch(nonce);
  wire(0).settle();
  ASSERT_EQ(lanes(), 2u);
  loop.advance(1s);
  EXPECT_EQ(events, Texts{"3 look"});
}

TEST_F(ZkLanesTest, NothingIsLookedAtAfterTheEnd) {
  for (std::uint64_t nonce = 1; nonce <= 3; ++nonce) watch(nonce);
  settle();
  wire(1).cut();
  watch(3);
  wire(0).expire();
  ASSERT_EQ(ann.ended.size(), 1u);
  loop.advance(5s);
  EXPECT_EQ(events, Texts{"3 look"});
}

// A watcher that has looked and found its node gone does not watch again. Its watch must be
// removed.
TEST_F(ZkLanesTest, WatchesOfThoseThatDoNotComeBackAreTakenBack) {
  for (std::uint64_t nonce = 1; nonce <= 3; ++nonce) watch(nonce);
  settle();
  wire(1).cut();
  EXPECT_EQ(events, Texts{"3 look"});
  loop.advance(1s);
  settle();
  EXPECT_TRUE(wire(1).watches().empty());
  watch(4);
  settle();
  EXPECT_EQ(wire(1).watches(), std::set<std::string>{"/app/job/" + node(4)});
}

// The server of a further session may be ahead of the server of the first session.
TEST_F(ZkLanesTest, LooksAreBehindASyncWhenThereAreFurtherSessions) {
  ann.settled(ann.look(1));
  EXPECT_EQ(texts(wire(0).take_log()), Texts{"children /app/job"});
  for (std::uint64_t nonce = 1; nonce <= 3; ++nonce) watch(nonce);
  settle();
  wire(0).take_log();
  ann.settled(ann.look(1));
  EXPECT_EQ(texts(wire(0).take_log()), (Texts{"sync /app/job", "children /app/job"}));
}

TEST_F(ZkLanesTest, FurtherSessionsGoWithTheFirst) {
  for (std::uint64_t nonce = 1; nonce <= 3; ++nonce) watch(nonce);
  settle();
  wire(0).expire();
  ASSERT_EQ(ann.ended.size(), 1u);
  zk.put("/app/job/" + node(3));
  if (wire(1).line_alive()) wire(1).expire();
  EXPECT_EQ(events, Texts{}) << "nothing is said after the end";
  ann.destroy();
  EXPECT_FALSE(wire(1).line_alive());
}

// The engine removes its watches and closes in one step. The requests that remove the watches are
// sent only after the step.
TEST_F(ZkLanesTest, TakingWatchesBackAndClosingInOneStep) {
  std::vector<WatchId> ids;
  for (std::uint64_t nonce = 1; nonce <= 6; ++nonce) ids.push_back(watch(nonce));
  settle();
  ASSERT_EQ(lanes(), 3u);
  int closed = 0;
  loop.step([&] {
    for (const WatchId id : ids) ann.session().unwatch(id);
    ann.session().close([&](const Result<Done>&) { ++closed; });
  });
  for (std::size_t i = 0; i < lanes(); ++i) wire(i).settle();
  EXPECT_EQ(closed, 1);
  ann.destroy();
  EXPECT_EQ(events, Texts{});
}

TEST_F(ZkLanesTest, ThereAreAtMostEightFurtherSessions) {
  // Each path is so long that it needs a session of its own.
  const std::string directory = "/app/" + std::string(90, 'x');
  for (int i = 0; i < 20; ++i) {
    loop.step([&] {
      const Ticket ticket{1, "other" + std::to_string(i) + "-lock-0000000001", {}};
      ann.session().watch(lock_name(std::string(90, 'x')), ticket, {}, [](WatchEvent) {});
    });
  }
  EXPECT_EQ(lanes(), 9u);
}

}  // namespace
}  // namespace baton::zk
