// Faults that these tests have found and that are not mended yet. EVERY TEST IN THIS FILE FAILS as
// long as its fault is there; afterwards it belongs to the file named beside it.
#include "fake_zk_client.h"

#include <gtest/gtest.h>

#include <string>

namespace baton::internal {
namespace {

// zk_line_test. A session that ends before it was ever used is not a permanent error: the engine
// tells all who wait of those ("waiting survives", "an outage is waited out").
TEST(ZkFoundTest, EndWhileOpeningIsWorthAnotherTry) {
  ManualLoop loop;
  FakeZk zk(loop);
  FakeZkClient ann(zk, {.open = false});
  ann.wire().connect();
  ann.wire().cut();  // the server went before it answered; the next one knows no such session
  ann.wire().expire();
  ASSERT_TRUE(ann.opened->got);
  EXPECT_TRUE(transient(ann.opened->error())) << ann.opened->error().what();
}

TEST(ZkFoundTest, AnotherTimeoutWhileOpeningIsWorthAnotherTry) {
  ManualLoop loop;
  FakeZk zk(loop);
  FakeZkClient ann(zk, {.open = false});
  ann.wire().connect();
  ann.wire().cut();
  ann.wire().connect_as(ann.wire().session(), std::chrono::seconds(4));
  ASSERT_TRUE(ann.opened->got);
  EXPECT_TRUE(transient(ann.opened->error())) << ann.opened->error().what();
}

// zk_withdraw_test. Every question is answered once; the second one replaces the first.
TEST(ZkFoundTest, TwoWithdrawsDuringOneJoinAreBothAnswered) {
  ManualLoop loop;
  FakeZk zk(loop);
  zk.put("/app/job");
  FakeZkClient ann(zk);
  ann.join(1);
  const auto first = ann.withdraw(1);
  const auto second = ann.withdraw(1);
  ann.wire().settle();
  EXPECT_TRUE(first->got);
  EXPECT_TRUE(second->got);
  EXPECT_TRUE(ann.entries().empty());
}

// zk_path_test. No server gives such a number (its counter has 32 bits), but anybody may make a
// node with such a name: it must not get the rank 0, nor stand before everybody in the list and
// behind everybody in the recipe.
TEST(ZkFoundTest, NumbersBeyond32BitsDoNotTurnTheOrderRound) {
  for (const char* child : {"x-lock--2147483649", "x-lock--4294967295", "x-lock--4294967296",
                            "x-lock--4294967297", "x-lock--9999999999", "x__lock__-9999999999"}) {
    const auto number = zk_sequence(child);
    if (!number) continue;  // no entry: fine
    EXPECT_GE(*number, 0) << child;
    EXPECT_NE(zk_rank(*number, false), 0u) << child;
    EXPECT_LT(zk_rank(0, true), zk_rank(*number, false)) << child;
  }
}

}  // namespace
}  // namespace baton::internal
