// What a stalled link between servers makes a holder believe: the worst cases of the deadline.
//
// A follower tells its leader which sessions are alive only when the leader asks, every half tick,
// and what its clients send through it meanwhile is not counted. So the leader's count of a session
// is older than the answers its client gets; how old at most is what the deadline is made of.
#include "chaos/zk_deadline_scene.h"

#include "support/boot_clock.h"

#include <thread>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

class ZkDeadlineStalls : public ZkDeadline {
 protected:
  // Has the leader ask at this phase of the tick, and every half tick from then on. A leader that
  // was paused asks as soon as it is resumed.
  static void ask_at(int leader, milliseconds phase) {
    zk().pause(leader);
    std::this_thread::sleep_for(kPing + 100ms);
    wait_for_phase(phase, kTick);
    zk().resume(leader);
  }
};

// An answer that was held back proves to the client that the leader had its
// request, but the leader counts the session from the last time it asked the follower, and the
// follower's next word is lost. All moments are chosen to make it worse: the stall begins right
// before the leader asks, and the last time it did is right before the end of one of its ticks, so
// that it rounds up by almost nothing.
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
    // The nearer to the end of the tick the worse, but what comes after it has 2 s more.
    const auto asked = kTick - 85ms + milliseconds(run % 4) * 20;
    setting.before = [&] { ask_at(leader, asked); };
    setting.cut = [&](const Longest& longest) {
      wait_for_phase(asked - 15ms, kTick);  // to open a session counts as well
      wait_for_phase((asked + kPing - 15ms) % kTick, kTick);
      link.stall(leader);
      // As long as somebody still believes, by their own clocks: on a busy machine they began at
      // other moments than they should have.
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

// The same with heartbeats that come again: a session that was silent while the link was stalled is
// not among those that the follower names when the leader's questions arrive in a bunch. Two more
// heartbeats are answered before the leader asks again, and their answers say nothing of that.
TEST_F(ZkDeadlineStalls, HeartbeatsAfterAStallDoNotMakeAHolderBelieveTooLong) {
  Margins margins("follower stalled, recovered, then cut off");
  constexpr auto kDelay = 80ms;
  for (int run = 0; run < runs() && !HasFatalFailure(); ++run) {
    Setting setting;
    const int leader = zk().leader();
    setting.victim = zk().a_follower();
    setting.majority = zk().host(leader);
    setting.holders = 12;  // a look at the lock in the stall saves its holder: not all look
    setting.stalls = true;
    const auto link = zk().link(leader, setting.victim);
    const auto asked = kTick - kDelay - 40ms;
    // Each has sent one when the follower answers the leader, and its own answer is on the way.
    setting.heartbeats = [&](int i) { return (asked + 5ms + 5ms * i) % kHeartbeat; };
    setting.before = [&] { ask_at(leader, asked); };
    setting.cut = [&](const Longest&) {
      wait_for_phase(asked, kTick);  // to open a session counts as well
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
