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
  trials_on_leaders("leader cut off", [](int, int leader) { zk().isolate(leader); });
}

// The followers notice at once, and elect another one while the old leader still serves.
TEST_F(ZkDeadline, AHolderOnALeaderWhoseConnectionsAreResetStopsBelievingFirst) {
  trials_on_leaders("leader's connections reset", [](int run, int leader) {
    for (int i = 0; i < zk().size(); ++i) {
      if (i == leader) continue;
      const auto link = zk().link(i, leader);
      if (run % 2 == 0) {  // new ones go nowhere
        link.blackhole();
        link.reset();
      } else {  // new ones are reset as well
        link.reset();
        link.cut();
      }
    }
  });
}

// The followers elect another one, and the old leader hears nothing of it: it says yes to all that
// it need not ask them, for five ticks.
TEST_F(ZkDeadline, AHolderOnALeaderThatIsReplacedWithoutItsKnowledgeStopsBelievingFirst) {
  trials_on_leaders("leader cut off, followers restarted", [](int, int leader) {
    zk().isolate(leader);
    for (int i = 0; i < zk().size(); ++i) {
      if (i == leader) continue;
      zk().kill(i);
      zk().start(i, false);
    }
  });
}

}  // namespace

void ZkDeadline::trials_on_leaders(const char* name,
                                   const std::function<void(int run, int leader)>& cut) {
  Margins margins(name);
  for (int run = 0; run < runs() && !HasFatalFailure(); ++run) {
    Setting setting;
    setting.victim = zk().leader();
    setting.majority = all_but(setting.victim);
    setting.cut = [&](const Longest&) {
      wait_for_phase(phase(run), kTick);
      cut(run, setting.victim);
    };
    trial(run, setting, margins);
  }
}

}  // namespace baton::chaos
