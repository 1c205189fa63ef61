#include "etcd/wall_clock.h"

#include <gtest/gtest.h>

namespace baton::etcd {
namespace {

using namespace std::chrono_literals;

class EtcdWallClockTest : public ::testing::Test {
 protected:
  bool set_back() { return clock_.set_back(std::chrono::system_clock::time_point(wall_), boot_); }
  void pass(Nanos span) { wall_ += span, boot_ += span; }
  Nanos wall_{1'700'000'000s};
  Time boot_{50s};

 private:
  WallClock clock_;
};

TEST_F(EtcdWallClockTest, NothingIsWrongWithAClockThatGoesOn) {
  for (int n = 0; n < 100; ++n) {
    EXPECT_FALSE(set_back());
    pass(1s);
  }
}

TEST_F(EtcdWallClockTest, StepForwardStopsNobody) {
  EXPECT_FALSE(set_back());
  wall_ += 1h;
  EXPECT_FALSE(set_back());
  pass(1s);
  EXPECT_FALSE(set_back());
}

TEST_F(EtcdWallClockTest, SetBackIsOverWhenTheTimeHasComeAgain) {
  EXPECT_FALSE(set_back());
  wall_ -= 30s;
  for (int n = 0; n < 30; ++n) {
    EXPECT_TRUE(set_back()) << n;
    pass(1s);
  }
  pass(1s);
  EXPECT_FALSE(set_back());
  pass(1s);
  EXPECT_FALSE(set_back());
  wall_ -= 5s;
  EXPECT_TRUE(set_back()) << "and again";
}

TEST_F(EtcdWallClockTest, PutForwardAgainIsOverAtOnce) {
  EXPECT_FALSE(set_back());
  wall_ -= 1h;
  EXPECT_TRUE(set_back());
  wall_ += 1h;
  EXPECT_FALSE(set_back());
}

TEST_F(EtcdWallClockTest, SmallStepsAreNothing) {
  EXPECT_FALSE(set_back());
  wall_ -= 900ms;
  EXPECT_FALSE(set_back());
  wall_ -= 200ms;
  EXPECT_TRUE(set_back()) << "many small ones are a large one";
}

}  // namespace
}  // namespace baton::etcd
