// When a watch reports "gone", when it reports "look", and which requests it sends to the server.
#include "fake_zk_watches.h"

#include <gtest/gtest.h>
#include <zookeeper/zookeeper.h>

#include <set>
#include <string>

namespace baton::zk {
namespace {

using namespace std::chrono_literals;

// ---- gone, or look

TEST_F(ZkWatchesTest, GoneIfBothWereReadOnThisConnection) {
  watch("/own");
  watch("/a", "/own");
  settle();
  EXPECT_EQ(events, Texts{});
  zk.remove("/a");
  settle();
  EXPECT_EQ(events, Texts{"/a gone"});
  EXPECT_EQ(wire().watches(), std::set<std::string>{"/own"});
}

TEST_F(ZkWatchesTest, OwnOneMayBeReadAfterTheOther) {
  watch("/a", "/own");
  settle();
  watch("/own");
  settle();
  zk.remove("/a");
  settle();
  EXPECT_EQ(events, Texts{"/a gone"});
}

TEST_F(ZkWatchesTest, LookIfTheOwnOneIsNotWatched) {
  watch("/a", "/own");
  watch("/b");
  settle();
  zk.remove("/a");
  zk.remove("/b");
  settle();
  EXPECT_EQ(events, (Texts{"/a look", "/b look"}));
}

TEST_F(ZkWatchesTest, LookIfTheOwnOneIsNotAnsweredYet) {
  watch("/a", "/own");
  settle();
  zk.remove("/a");
  watch("/own");  // sent, but the event of the other path arrives before its answer
  settle();
  EXPECT_EQ(events, Texts{"/a look"});
}

TEST_F(ZkWatchesTest, LookIfTheOwnOneWentFirst) {
  watch("/own");
  watch("/a", "/own");
  settle();
  zk.remove("/own");
  zk.remove("/a");
  settle();
  EXPECT_EQ(events, (Texts{"/own look", "/a look"}));
}

TEST_F(ZkWatchesTest, LookAfterAReconnect) {
  watch("/own");
  watch("/a", "/own");
  settle();
  wire().cut();
  wire().connect();
  settle();
  EXPECT_EQ(events, Texts{}) << "the C client tells the server again by itself";
  zk.remove("/a");
  settle();
  EXPECT_EQ(events, Texts{"/a look"});
}

TEST_F(ZkWatchesTest, LookForWhatWentWhileDisconnected) {
  watch("/own");
  watch("/a", "/own");
  settle();
  wire().cut();
  zk.remove("/a");
  wire().connect();
  settle();
  EXPECT_EQ(events, Texts{"/a look"});
}

TEST_F(ZkWatchesTest, LookIfOneOfTheTwoIsOfAnOlderConnection) {
  watch("/own");
  settle();
  wire().cut();
  wire().connect();
  watch("/a", "/own");
  settle();
  zk.remove("/a");
  settle();
  EXPECT_EQ(events, Texts{"/a look"}) << "the own one is older";
  events.clear();
  watch("/b", "/new");
  settle();
  wire().cut();
  wire().connect();
  zk.put("/new");
  watch("/new");
  settle();
  zk.remove("/b");
  settle();
  EXPECT_EQ(events, Texts{"/b look"}) << "the other one is older";
}

TEST_F(ZkWatchesTest, GoneAgainIfBothAreReadAnewAfterAReconnect) {
  watch("/a", "/own");
  wire().cut();
  wire().connect();
  watch("/own");
  settle();
  zk.remove("/a");
  settle();
  EXPECT_EQ(events, Texts{"/a gone"}) << "neither was answered on the old one";
}

TEST_F(ZkWatchesTest, LookIfItIsGoneBeforeItIsWatched) {
  zk.remove("/a");
  watch("/own");
  watch("/a", "/own");
  settle();
  EXPECT_EQ(events, Texts{"/a look"});
  EXPECT_EQ(watches->bytes(0), std::string("/own").size() + 4);
}

// Not at once: the watcher would immediately watch again.
TEST_F(ZkWatchesTest, WhatMayNotBeWatchedIsALookASecondLater) {
  zk.refuse = [](const Request&) { return int{ZNOAUTH}; };
  const WatchId taken_back = watch("/b");
  watch("/a");
  settle();
  watch("/a");
  sent();
  unwatch(taken_back);
  loop.advance(999ms);
  EXPECT_EQ(events, Texts{});
  EXPECT_EQ(sent(), Texts{}) << "a second watcher asks no sooner";
  loop.advance(1ms);
  EXPECT_EQ(events, (Texts{"/a look", "/a look"}));
  EXPECT_EQ(watches->bytes(0), 0u);
  EXPECT_EQ(loop.timers(), 0u);
}

// A server that throttles must not get a new request as soon as it has answered.
TEST_F(ZkWatchesTest, ThrottledOneIsALookASecondLater) {
  zk.refuse = [](const Request&) { return int{ZTHROTTLEDOP}; };
  watch("/a");
  for (int n = 0; n < 10; ++n) wire().exchange();
  EXPECT_EQ(sent(), Texts{"get_watch /a"});
  EXPECT_EQ(events, Texts{});
  loop.advance(1s);
  EXPECT_EQ(events, Texts{"/a look"});
}

// ---- requests to the server

TEST_F(ZkWatchesTest, ManyWatchersAreOneRequestAndEachHearsOnce) {
  watch("/own");
  watch("/a", "/own");
  watch("/a");
  settle();
  watch("/a", "/own");
  settle();
  EXPECT_EQ(sent(), (Texts{"get_watch /own", "get_watch /a"}));
  zk.remove("/a");
  settle();
  EXPECT_EQ(events, (Texts{"/a gone", "/a look", "/a gone"}));
  zk.put("/a");
  zk.remove("/a");
  settle();
  EXPECT_EQ(events.size(), 3u);
}

TEST_F(ZkWatchesTest, ChangedDataArmsAgainAndTellsNobody) {
  watch("/own");
  watch("/a", "/own");
  settle();
  sent();
  zk.write("/a", "x");
  zk.write("/own", "y");
  settle();
  EXPECT_EQ(sent(), (Texts{"get_watch /a", "get_watch /own"}));
  EXPECT_EQ(events, Texts{});
  EXPECT_EQ(watches->bytes(0), 6u + 8u);
  zk.remove("/a");
  settle();
  EXPECT_EQ(events, Texts{"/a gone"});
}

TEST_F(ZkWatchesTest, GoneWhileItIsArmedAgainIsSeen) {
  watch("/a");
  settle();
  zk.write("/a", "x");
  wire().deliver_answer();  // the change; the watch is requested again
  zk.remove("/a");
  settle();
  EXPECT_EQ(events, Texts{"/a look"});
}

TEST_F(ZkWatchesTest, UnwatchAndWatchInOneStepSendNothing) {
  const WatchId first = watch("/a");
  settle();
  sent();
  loop.step([&] {
    watches->unwatch(first);
    watch_here("/a");
  });
  settle();
  EXPECT_EQ(sent(), Texts{});
  zk.remove("/a");
  settle();
  EXPECT_EQ(events, Texts{"/a look"}) << "once, for the second";
}

TEST_F(ZkWatchesTest, LastUnwatchTakesTheWatchBack) {
  const WatchId first = watch("/a");
  const WatchId second = watch("/a");
  settle();
  sent();
  unwatch(first);
  settle();
  EXPECT_EQ(sent(), Texts{}) << "somebody still watches";
  unwatch(second);
  EXPECT_EQ(sent(), Texts{"unwatch /a"});
  settle();
  EXPECT_TRUE(wire().watches().empty());
  EXPECT_EQ(watches->bytes(0), 0u);
  zk.remove("/a");
  settle();
  EXPECT_EQ(events, Texts{});
  unwatch(second);
  unwatch(WatchId::none);
  unwatch(WatchId{999});
  EXPECT_EQ(sent(), Texts{});
}

TEST_F(ZkWatchesTest, OwnNodeThatIsBeingRemovedNeedsNoRemovalOfItsWatch) {
  const WatchId own = watch("/own");
  settle();
  sent();
  loop.step([&] {
    watches->unwatch(own);
    watches->going("/own");
  });
  settle();
  EXPECT_EQ(sent(), Texts{});
  zk.remove("/own");
  settle();
  EXPECT_EQ(events, Texts{});
  EXPECT_EQ(watches->bytes(0), 0u) << "its event has ended it";
}

TEST_F(ZkWatchesTest, UnwatchWhileItIsAskedForIsDecidedWhenItIsAnswered) {
  const WatchId first = watch("/a");
  unwatch(first);
  EXPECT_EQ(sent(), Texts{"get_watch /a"});
  settle();
  EXPECT_EQ(sent(), Texts{"unwatch /a"});
  EXPECT_TRUE(wire().watches().empty());
  const WatchId second = watch("/b");
  unwatch(second);
  watch("/b");
  settle();
  EXPECT_EQ(sent(), Texts{"get_watch /b"}) << "wanted again before it was answered";
}

TEST_F(ZkWatchesTest, UnwatchWhileItIsAskedForAndLostIsForgotten) {
  unwatch(watch("/a"));
  wire().cut();
  sent();
  wire().connect();
  settle();
  EXPECT_EQ(sent(), Texts{});
  EXPECT_EQ(watches->bytes(0), 0u);
}

TEST_F(ZkWatchesTest, LostOneIsAskedForAgain) {
  for (const bool at_server : {false, true}) {
    const std::string path = at_server ? "/b" : "/a";
    watch(path);
    sent();
    if (at_server) {
      wire().cut_after_requests();
    } else {
      wire().cut();
    }
    EXPECT_EQ(events, Texts{}) << "nothing is known";
    wire().connect();
    EXPECT_EQ(sent(), Texts{"get_watch " + path});
    settle();
    zk.remove(path);
    settle();
    EXPECT_EQ(events, Texts{path + " look"});
    events.clear();
  }
}

TEST_F(ZkWatchesTest, LostOneOfANodeThatWentMeanwhileIsALook) {
  watch("/a");
  wire().cut_after_requests();
  zk.remove("/a");
  wire().connect();
  settle();
  EXPECT_EQ(events, Texts{"/a look"});
}

TEST_F(ZkWatchesTest, WatchWhileDisconnectedIsSentWithTheNextConnection) {
  wire().cut();
  watch("/a");
  EXPECT_EQ(sent(), Texts{});
  wire().connect();
  EXPECT_EQ(sent(), Texts{"get_watch /a"});
}

TEST_F(ZkWatchesTest, HandlersMayWatchAndUnwatch) {
  WatchId other{};
  loop.step([&] {
    watches->watch("/a", {}, false, [&](WatchEvent) {
      watches->unwatch(other);
      watch_here("/b");
    });
    other = watch_here("/a");
  });
  settle();
  zk.remove("/a");
  settle();
  EXPECT_EQ(events, Texts{}) << "taken back before its turn";
  zk.remove("/b");
  settle();
  EXPECT_EQ(events, Texts{"/b look"});
}

// ---- watches that start soon, not at once

TEST_F(ZkWatchesTest, SoonIsArmedAfter100Milliseconds) {
  watch("/own", {}, true);
  loop.advance(99ms);
  EXPECT_EQ(sent(), Texts{});
  loop.advance(1ms);
  EXPECT_EQ(sent(), Texts{"get_watch /own"});
  settle();
  zk.remove("/own");
  settle();
  EXPECT_EQ(events, Texts{"/own look"});
}

TEST_F(ZkWatchesTest, SoonTakenBackInTimeCostsNothing) {
  unwatch(watch("/own", {}, true));
  loop.advance(10s);
  settle();
  EXPECT_EQ(sent(), Texts{});
  EXPECT_EQ(loop.timers(), 0u);
}

TEST_F(ZkWatchesTest, SoonAndAtOnceAreOneRequestAtOnce) {
  watch("/a", {}, true);
  watch("/a");
  EXPECT_EQ(sent(), Texts{"get_watch /a"});
  settle();
  loop.advance(1s);
  EXPECT_EQ(sent(), Texts{});
  zk.remove("/a");
  settle();
  EXPECT_EQ(events, (Texts{"/a look", "/a look"}));
}

TEST_F(ZkWatchesTest, NothingIsLeftOfThemAfterTheirEnd) {
  watch("/a");
  watch("/own", {}, true);
  wire().deliver_request();
  loop.step([&] {
    line.reset();  // as in the destructor of the session
    watches.reset();
  });
  loop.advance(1s);
  EXPECT_EQ(events, Texts{});
  EXPECT_EQ(loop.timers(), 0u);
}

}  // namespace
}  // namespace baton::zk
