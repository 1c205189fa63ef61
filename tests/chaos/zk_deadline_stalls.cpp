// The worst cases of the deadline: links between servers that deliver messages late.
//
// A follower tells its leader which sessions are alive only when the leader asks, every half tick.
// Requests that clients send through the follower in between do not count. So the leader counts a
// session from an earlier time than that of the answers which the client receives. The rule of the
// deadline depends on the greatest such difference.
#include "chaos/zk_deadline_scene.h"

#include "support/boot_clock.h"

#include <thread>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

class ZkDeadlineStalls : public ZkDeadline {
 protected:
  // Makes the leader ask its followers at this phase of the tick, and every half tick from then on.
  // A leader that was paused asks as soon as it is resumed.
  static void ask_at(int leader, milliseconds phase) {
    zk().pause(leader);
    std::this_thread::sleep_for(kPing + 100ms);
    wait_for_phase(phase, kTick);
    zk().resume(leader);
  }
};

// A late answer proves to the client that the leader received its request. But the leader counts
// the session from the last time it asked the follower, and the follower's next reply is lost. The
// moments are chosen for the worst case: the stall begins just before the leader asks, and the last
// time it asked is just before the end of one of its ticks, so the leader rounds up by almost
// nothing.
TEST_F(ZkDeadlineStalls, AHeldBackAnswerAndThenACutDoNotMakeAHolderBelieveTooLong) {
  Margins margins("follower stalled, then cut off");
  for (int run = 0; run < runs() && !HasFatalFailure(); ++run) {
    Setting setting;
    const int leader = zk().leader();
    setting.victim = zk().a_follower();
    setting.majority = zk().host(leader);
    setting.holders = 8;
    setting.stalls = true;
    const auto link = zk().link(leader, setting.victim);
    // A phase nearer to the end of the tick is worse. A phase after the end gives the session 2 s
    // more.
    const auto asked = kTick - 85ms + milliseconds(run % 4) * 20;
    setting.before = [&] { ask_at(leader, asked); };
    setting.cut = [&](const Longest& longest) {
      wait_for_phase(asked - 15ms, kTick);  // the opening of a session counts, too
      wait_for_phase((asked + kPing - 15ms) % kTick, kTick);
      link.stall(leader);
      // Stalls until the holders believe for only `left` more. It asks the holders themselves,
      // because on a busy machine they began at other moments than planned.
      const auto left = run % 2 == 0 ? 500ms : 150ms;
      const test::Stopwatch stalled;
      while (longest() > left && stalled.elapsed() < kTimeout) std::this_thread::sleep_for(1ms);
      link.blackhole(setting.victim);
      link.resume(leader);
    };
    trial(run, setting, margins);
  }
  EXPECT_FALSE(margins.empty()) << "nobody outlived a stall";
}

// The same with heartbeats after the stall. The leader's questions then arrive together, and the
// follower does not name a session that was silent during the stall. Two more heartbeats are
// answered before the leader asks again, and their answers do not show that the session was not
// named.
TEST_F(ZkDeadlineStalls, HeartbeatsAfterAStallDoNotMakeAHolderBelieveTooLong) {
  Margins margins("follower stalled, recovered, then cut off");
  constexpr auto kDelay = 80ms;
  for (int run = 0; run < runs() && !HasFatalFailure(); ++run) {
    Setting setting;
    const int leader = zk().leader();
    setting.victim = zk().a_follower();
    setting.majority = zk().host(leader);
    setting.holders = 12;  // a look at its lock during the stall saves a holder; not all look
    setting.stalls = true;
    const auto link = zk().link(leader, setting.victim);
    const auto asked = kTick - kDelay - 40ms;
    // Each holder has sent a heartbeat when the follower answers the leader, and has no answer to
    // it yet.
    setting.heartbeats = [&](int i) { return (asked + 5ms + 5ms * i) % kHeartbeat; };
    setting.before = [&] { ask_at(leader, asked); };
    setting.cut = [&](const Longest&) {
      wait_for_phase(asked, kTick);  // the opening of a session counts, too
      wait_for_phase(asked - 300ms, kTick);
      link.delay(leader, kDelay);
      wait_for_phase((asked + kDelay + 10ms) % kTick, kTick);
      link.stall(leader);
      wait_for_phase((asked + 1400ms) % kTick, kTick);
      link.delay(leader, 0ms);
      link.resume(leader);
      wait_for_phase((asked + 1950ms) % kTick, kTick);
      link.blackhole(setting.victim);
    };
    trial(run, setting, margins);
  }
  EXPECT_FALSE(margins.empty()) << "nobody outlived a stall";
}

}  // namespace
}  // namespace baton::chaos
