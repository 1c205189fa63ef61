// The deadline of a hold on ZooKeeper, when servers lose each other: valid() must be false before
// the majority can give the lock to somebody else. Session timeout 4 s on a stock tick of 2 s.
//
// BATON_RUNS=20 baton_zk_deadline: so many cuts of each kind, and the margin of each.
#include "chaos/zk_deadline_scene.h"

#include "support/boot_clock.h"

namespace baton::chaos {
namespace {

// Cuts come at all moments between two ticks of the servers, however few they are.
std::chrono::milliseconds phase(int run) {
  static const auto first = std::chrono::milliseconds(test::boot_now().count() / 1'000 % 2'000);
  return (first + kTick * run / runs()) % kTick;
}

TEST_F(ZkDeadline, AHolderOnAFollowerThatIsCutOffSilentlyStopsBelievingFirst) {
  Margins margins("follower cut off");
  for (int run = 0; run < runs() && !HasFatalFailure(); ++run) {
    Setting setting;
    const int leader = zk().leader();
    setting.victim = zk().a_follower();
    setting.majority = zk().host(leader);
    setting.naive = true;
    setting.cut = [&](const Longest&) {
      wait_for_phase(phase(run), kTick);
      zk().link(leader, setting.victim).blackhole();
    };
    trial(run, setting, margins);
  }
}

TEST_F(ZkDeadline, AHolderOnALeaderThatIsCutOffSilentlyStopsBelievingFirst) {
  Margins margins("leader cut off");
  for (int run = 0; run < runs() && !HasFatalFailure(); ++run) {
    Setting setting;
    setting.victim = zk().leader();
    setting.majority = all_but(setting.victim);
    setting.cut = [&](const Longest&) {
      wait_for_phase(phase(run), kTick);
      zk().isolate(setting.victim);
    };
    trial(run, setting, margins);
  }
}

// The followers notice at once, and elect another one while the old leader still serves.
TEST_F(ZkDeadline, AHolderOnALeaderWhoseConnectionsAreResetStopsBelievingFirst) {
  Margins margins("leader's connections reset");
  for (int run = 0; run < runs() && !HasFatalFailure(); ++run) {
    Setting setting;
    setting.victim = zk().leader();
    setting.majority = all_but(setting.victim);
    setting.cut = [&](const Longest&) {
      wait_for_phase(phase(run), kTick);
      for (int i = 0; i < zk().size(); ++i) {
        if (i == setting.victim) continue;
        const auto link = zk().link(i, setting.victim);
        if (run % 2 == 0) {  // new ones go nowhere
          link.blackhole();
          link.reset();
        } else {  // new ones are reset as well
          link.reset();
          link.cut();
        }
      }
    };
    trial(run, setting, margins);
  }
}

// The followers elect another one, and the old leader hears nothing of it: it says yes to all that
// it need not ask them, for five ticks.
TEST_F(ZkDeadline, AHolderOnALeaderThatIsReplacedWithoutItsKnowledgeStopsBelievingFirst) {
  Margins margins("leader cut off, followers restarted");
  for (int run = 0; run < runs() && !HasFatalFailure(); ++run) {
    Setting setting;
    setting.victim = zk().leader();
    setting.majority = all_but(setting.victim);
    setting.cut = [&](const Longest&) {
      wait_for_phase(phase(run), kTick);
      zk().isolate(setting.victim);
      for (int i = 0; i < zk().size(); ++i) {
        if (i == setting.victim) continue;
        zk().kill(i);
        zk().start(i, false);
      }
    };
    trial(run, setting, margins);
  }
}

}  // namespace
}  // namespace baton::chaos
