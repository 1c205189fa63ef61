// The connection is cut at every single message of an acquire and of a release, once on the way to
// the server and once on the way back. The outcome must be the same as without the cut.
#include "chaos/etcd_faults.h"
#include "chaos/faults_cuts.h"

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::Direction;

// An etcd server cancels the requests of a connection that ends. So a cut on the way back loses the
// answer, after the server has executed the request.
class EtcdCase final : public CutCase {
 public:
  using CutCase::arm;
  using CutCase::CutCase;
  void arm(const Cut& cut) override {
    direction_ = cut.done ? Direction::kToClient : Direction::kToServer;
    proxy().cut_at_grpc(direction_, cut.n, false);
  }
  bool wait_cut(std::chrono::milliseconds limit) override {
    return proxy().wait_cut(direction_, limit);
  }

 private:
  std::atomic<Direction> direction_{Direction::kToServer};
};

class EtcdFaultsCuts : public EtcdFaults {
 protected:
  static Cuts<EtcdCase> cuts() { return Cuts<EtcdCase>(store()); }
};

TEST_F(EtcdFaultsCuts, AnAcquireOfANewLockSurvivesACutAtEveryMessage) {
  cuts().acquire_of_a_new_lock(4);
}

TEST_F(EtcdFaultsCuts, AnAcquireBehindAHolderSurvivesACutAtEveryMessage) {
  cuts().acquire_behind_a_holder(10);
}

TEST_F(EtcdFaultsCuts, AnAcquireSurvivesASecondCutWhileItRecovers) {
  for (int second = 1; second <= 2; ++second) cuts().acquire_and_a_second_cut(4, second);
}

TEST_F(EtcdFaultsCuts, AnAcquireThatIsGivenUpLeavesNothingWhateverIsCut) {
  cuts().acquire_that_is_given_up(8);
}

// The answer to the join comes after the timeout of the acquire. So does the answer to the removal.
TEST_F(EtcdFaultsCuts, AnAcquireThatIsGivenUpBeforeItIsAnsweredLeavesNothing) {
  const std::string root = fresh_root();
  test::Proxy proxy(etcd().client_port(0));
  auto client = connect_quietly(store().url(proxy.host(), root), kEtcdTtl, "unheard");
  const auto keys = [&] { return etcd().keys(root + "/").size(); };
  const auto before = etcd().revision();
  proxy.stall(Direction::kToClient);
  const test::Stopwatch watch;
  const auto result = client.mutex("a/b").acquire_result({.timeout = 300ms});
  EXPECT_EQ(result.has_value() ? Errc{} : result.error().errc(), Errc::timeout);
  EXPECT_TRUE(
      test::eventually("it is done all the same", [&] { return etcd().revision() > before; }));
  EXPECT_TRUE(wait_until(watch, 1s));
  proxy.heal();
  EXPECT_TRUE(test::eventually(
      "nothing is left", [&] { return keys() == 0; }, 3s));
  auto lock = client.mutex("a/b").acquire({.timeout = test::kLong});
  EXPECT_EQ(keys(), 1U);
}

TEST_F(EtcdFaultsCuts, AReleaseSurvivesACutAtEveryMessage) { cuts().release(4); }

TEST_F(EtcdFaultsCuts, ADroppedLockIsFreeWhateverIsCut) { cuts().dropped_lock(4); }

}  // namespace
}  // namespace baton::chaos
