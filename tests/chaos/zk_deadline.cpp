// The deadline of a hold on ZooKeeper when servers lose contact with each other: valid() must be
// false before the majority can give the lock to another client. The session timeout is 4 s, with
// the default tick of 2 s.
//
// BATON_RUNS=20 baton_zk_deadline makes 20 cuts of each kind and prints the margin of each.
#include "chaos/zk_deadline_scene.h"

#include "support/boot_clock.h"

namespace baton::chaos {
namespace {

// Spreads the cuts of all runs evenly over one tick of the servers, from a random first phase.
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

// The followers notice at once and elect another leader, while the old leader still serves.
TEST_F(ZkDeadline, AHolderOnALeaderWhoseConnectionsAreResetStopsBelievingFirst) {
  trials_on_leaders("leader's connections reset", [](int run, int leader) {
    for (int i = 0; i < zk().size(); ++i) {
      if (i == leader) continue;
      const auto link = zk().link(i, leader);
      if (run % 2 == 0) {  // new connections receive nothing
        link.blackhole();
        link.reset();
      } else {  // new connections are reset, too
        link.reset();
        link.cut();
      }
    }
  });
}

// The followers elect another leader, and the old leader does not notice. For five ticks it answers
// all requests for which it need not ask the followers.
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
