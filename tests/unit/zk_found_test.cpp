// Faults that these tests have found and that are not mended yet. EVERY TEST IN THIS FILE FAILS as
// long as its fault is there; afterwards it belongs to the file named beside it.
#include "fake_zk_watches.h"

#include <gtest/gtest.h>
#include <zookeeper/zookeeper.h>

namespace baton::internal {
namespace {

using ZkFoundTest = ZkWatchesTest;

// zk_watches_test. A server that throttles is asked again as fast as it answers, once for every
// path that is watched; operators' questions wait 200 ms (ZkSession::again).
TEST_F(ZkFoundTest, ThrottledWatchIsAskedForAgainAfterAWhile) {
  zk.refuse = [](const ZkRequest&) { return int{ZTHROTTLEDOP}; };
  watch("/a");
  for (int n = 0; n < 10; ++n) wire().exchange();
  EXPECT_LE(sent().size(), 2u);
  zk.refuse = nullptr;
  loop.advance(std::chrono::seconds(2));
  settle();
  zk.remove("/a");
  settle();
  EXPECT_EQ(events, Texts{"/a look"});
}

}  // namespace
}  // namespace baton::internal
