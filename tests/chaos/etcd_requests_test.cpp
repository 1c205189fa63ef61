// What a lock costs an etcd server: calls counted by the server itself.
#include "support/etcd_server.h"
#include "support/eventually.h"

#include <baton/baton.h>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <ostream>
#include <string>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::eventually;

struct Calls {
  std::int64_t transactions = 0;
  std::int64_t ranges = 0;
  std::int64_t watch_requests = 0;  // creations and cancellations
  std::int64_t leases = 0;          // grants and revocations
  bool operator==(const Calls&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Calls& calls) {
  return out << calls.transactions << " transactions, " << calls.ranges << " ranges, "
             << calls.watch_requests << " requests about watches, " << calls.leases << " leases";
}

class EtcdRequests : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::etcd_installed()) GTEST_SKIP() << "etcd is not installed";
    server_ = std::make_unique<test::EtcdCluster>();
    one_.emplace(connect());
    other_.emplace(connect());
    before_ = seen();
  }

  // A keepalive every 20 s, a look of the backstop after 30: neither comes within a test.
  Client connect() const {
    ClientOptions options;
    options.session_timeout = 60s;
    return Client::connect("etcd://" + server_->hosts() + "/requests", options);
  }

  Calls seen() const {
    return {server_->unary_calls(0, "KV", "Txn"), server_->unary_calls(0, "KV", "Range"),
            server_->messages_received(0, "Watch", "Watch"),
            server_->unary_calls(0, "Lease", "LeaseGrant") +
                server_->unary_calls(0, "Lease", "LeaseRevoke")};
  }
  Calls since_before() const {
    const Calls now = seen();
    return {now.transactions - before_.transactions, now.ranges - before_.ranges,
            now.watch_requests - before_.watch_requests, now.leases - before_.leases};
  }

  std::unique_ptr<test::EtcdCluster> server_;
  std::optional<Client> one_, other_;
  Calls before_;
};

TEST_F(EtcdRequests, AFreeLockTakesTwoTransactions) {
  constexpr int kRounds = 20;
  for (int i = 0; i < kRounds; ++i) one_->mutex("free").acquire().release();
  EXPECT_EQ(since_before(), (Calls{2 * kRounds, 0, 0, 0}));
}

TEST_F(EtcdRequests, AFailedTryTakesOneReadAndNoWrite) {
  const Lock held = one_->mutex("taken").acquire();
  before_ = seen();
  constexpr int kRounds = 5;
  for (int i = 0; i < kRounds; ++i) EXPECT_FALSE(other_->mutex("taken").try_acquire());
  const Calls calls = since_before();
  EXPECT_EQ(calls.transactions, 0) << calls;
  EXPECT_EQ(calls.ranges, kRounds) << calls;
  EXPECT_EQ(calls.leases, 0) << calls;
}

TEST_F(EtcdRequests, AWaiterTakesAWatchAndAtMostTwoReadsMore) {
  Lock held = one_->mutex("contended").acquire();
  before_ = seen();
  std::promise<Result<Lock>> promise;
  auto granted = promise.get_future();
  other_->mutex("contended").acquire_async({.timeout = 30s}, [&promise](Result<Lock> lock) {
    promise.set_value(std::move(lock));
  });
  // Of the one ahead, and, because it waits for longer than 100 ms, of both holders' own keys.
  ASSERT_TRUE(eventually("all is watched", [&] { return server_->watchers(0) == 3; }));
  EXPECT_EQ(since_before().transactions, 1) << since_before();
  held.release();
  Lock next = granted.get().value();
  const Calls calls = since_before();
  EXPECT_EQ(calls.transactions, 2) << "join, and the other's release: " << calls;
  EXPECT_LE(calls.ranges, 2) << calls;
  EXPECT_GE(calls.watch_requests, 3) << calls;
  EXPECT_EQ(calls.leases, 0) << calls;
}

}  // namespace
}  // namespace baton::chaos
