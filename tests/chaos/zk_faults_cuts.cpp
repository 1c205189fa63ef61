// The connection is cut at every single request of an acquire and of a release, once before the
// server receives it and once after. The outcome must be the same as without the cut.
#include "chaos/faults_cuts.h"
#include "chaos/zk_faults.h"

namespace baton::chaos {
namespace {

using test::Direction;

class ZkCase final : public CutCase {
 public:
  using CutCase::arm;
  using CutCase::CutCase;
  void arm(const Cut& cut) override {
    proxy().cut_at_frame(Direction::kToServer, cut.n, cut.done, test::zk_requests);
  }
  bool wait_cut(std::chrono::milliseconds limit) override {
    return proxy().wait_cut(Direction::kToServer, limit);
  }
};

class ZkFaultsCuts : public ZkFaults {
 protected:
  static Cuts<ZkCase> cuts() { return Cuts<ZkCase>(store_of(zk())); }
};

TEST_F(ZkFaultsCuts, AnAcquireOfANewLockSurvivesACutAtEveryRequest) {
  cuts().acquire_of_a_new_lock(12);
}

TEST_F(ZkFaultsCuts, AnAcquireBehindAHolderSurvivesACutAtEveryRequest) {
  cuts().acquire_behind_a_holder(10);
}

TEST_F(ZkFaultsCuts, AnAcquireSurvivesASecondCutWhileItRecovers) {
  for (int second = 1; second <= 4; ++second) cuts().acquire_and_a_second_cut(12, second);
}

TEST_F(ZkFaultsCuts, AnAcquireThatIsGivenUpLeavesNothingWhateverIsCut) {
  cuts().acquire_that_is_given_up(8);
}

TEST_F(ZkFaultsCuts, AReleaseSurvivesACutAtEveryRequest) { cuts().release(5); }

TEST_F(ZkFaultsCuts, ADroppedLockIsFreeWhateverIsCut) { cuts().dropped_lock(5); }

}  // namespace
}  // namespace baton::chaos
