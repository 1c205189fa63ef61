// Actions of operators, and stores whose data was replaced.
#include "chaos/etcd_faults.h"
#include "support/eventually.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <future>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::boot_now;
using test::eventually;
using test::kLong;
using test::Stopwatch;

constexpr auto kNoticed = 1s;  // the contract, while the client is connected

// Records when a lock was lost.
class Loss {
 public:
  explicit Loss(const Lock& lock)
      : callback_(lock.lost_token(), [this] { when_ = boot_now().count(); }) {}
  bool happened() const { return when_ != 0; }
  std::chrono::milliseconds after(std::chrono::nanoseconds begin) const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds(when_) -
                                                                 begin);
  }

 private:
  std::atomic<std::int64_t> when_{0};
  std::stop_callback<std::function<void()>> callback_;
};

class EtcdFaultsOperators : public EtcdFaults {
 protected:
  void expect_lost_soon(const Lock& lock, const Loss& loss, std::chrono::nanoseconds since,
                        Errc reason) {
    ASSERT_TRUE(eventually("the loss", [&] { return loss.happened(); }));
    EXPECT_LE(loss.after(since), kNoticed);
    EXPECT_FALSE(lock.valid());
    EXPECT_EQ(lock.state(), LockState::lost);
    EXPECT_EQ(lock.lost_reason(), make_error_code(reason)) << lock.lost_reason().message();
    std::printf("[          ] noticed after %lld ms: %s\n",
                static_cast<long long>(loss.after(since).count()),
                lock.lost_reason().message().c_str());
  }
  // The keys of this lock, in queue order.
  std::vector<test::EtcdKey> line(const std::string& name) {
    auto keys = etcd().keys(root_ + "/" + name + "/");
    std::sort(keys.begin(), keys.end(),
              [](const auto& a, const auto& b) { return a.create_revision < b.create_revision; });
    return keys;
  }
  ::testing::AssertionResult in_line(const std::string& name, std::size_t count) {
    return eventually(std::to_string(count) + " in line",
                      [&] { return line(name).size() == count; });
  }
  static std::future<Lock> waiting(Client& client, const std::string& name) {
    return std::async(std::launch::async, [mutex = client.mutex(name)]() mutable {
      return mutex.acquire({.timeout = kLong});
    });
  }

  const std::string root_ = fresh_root();
};

TEST_F(EtcdFaultsOperators, ARevokedLeaseEndsTheHoldWithinASecondAndWaitersGoOn) {
  auto holder = connect(root_);
  auto other = connect(root_);
  auto lock = holder.mutex("job").acquire({.timeout = kLong});
  const Loss loss(lock);
  auto same = waiting(holder, "job");  // its session ends, too, so it joins again at the end
  ASSERT_TRUE(in_line("job", 2));
  auto next = waiting(other, "job");
  ASSERT_TRUE(in_line("job", 3));
  const auto begin = boot_now();
  ASSERT_TRUE(etcd().revoke(line("job").at(0).lease));
  expect_lost_soon(lock, loss, begin, Errc::session_expired);
  auto second = next.get();
  EXPECT_GT(second.token(), lock.token());
  EXPECT_TRUE(in_line("job", 2));
  second.release(kLong);
  auto third = same.get();
  EXPECT_GT(third.token(), second.token());
  third.verify(kLong);
  EXPECT_THROW(lock.release(kLong), Error);
}

TEST_F(EtcdFaultsOperators, ADeletedKeyEndsTheHoldWithinASecond) {
  auto holder = connect(root_);
  auto other = connect(root_);
  for (const auto age : {0ms, 300ms}) {  // a young hold is not watched yet
    auto lock = holder.mutex("job").acquire({.timeout = kLong});
    auto kept = holder.mutex("another").acquire({.timeout = kLong});
    const Loss loss(lock);
    auto next = waiting(other, "job");
    ASSERT_TRUE(in_line("job", 2));
    EXPECT_TRUE(wait_until({}, age));
    const auto begin = boot_now();
    ASSERT_TRUE(etcd().remove_key(line("job").at(0).key));
    expect_lost_soon(lock, loss, begin, Errc::evicted);
    EXPECT_GT(next.get().token(), lock.token());
    kept.verify(kLong);  // the session continues
  }
}

TEST_F(EtcdFaultsOperators, AWaiterWhoseKeyIsDeletedJoinsAgainAtTheEnd) {
  auto client = connect(root_);
  auto other = connect(root_);
  auto lock = client.mutex("job").acquire({.timeout = kLong});
  auto evicted = waiting(other, "job");
  ASSERT_TRUE(in_line("job", 2));
  auto last = waiting(client, "job");
  ASSERT_TRUE(in_line("job", 3));
  const auto before = line("job");
  ASSERT_TRUE(etcd().remove_key(before.at(1).key));
  ASSERT_TRUE(eventually("in line again", [&] {
    const auto now = line("job");
    return now.size() == 3 && now[1].key == before[2].key &&
           now[2].create_revision > before[2].create_revision;  // its key may have the same name
  }));
  lock.release(kLong);
  auto second = last.get();
  second.release(kLong);
  EXPECT_GT(evicted.get().token(), second.token());
}

// ---- another store

class EtcdStores : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::etcd_installed()) GTEST_SKIP() << "no etcd on this machine";
  }
  static std::string url(const std::string& hosts) { return "etcd://" + hosts + "/app"; }
};

TEST_F(EtcdStores, AHoldIsLostWhenAnotherClusterAnswersInsteadAndTheClientRecovers) {
  test::EtcdCluster one;
  const test::EtcdCluster other;
  auto client = connect_quietly(url(one.host(0) + "," + other.host(0)), kEtcdTtl, "mixed");
  auto lock = client.mutex("job").acquire({.timeout = kLong});
  one.kill(0);
  ASSERT_TRUE(eventually("the loss", [&] { return lock.lost_token().stop_requested(); }));
  EXPECT_EQ(lock.lost_reason(), make_error_code(Errc::store_changed))
      << lock.lost_reason().message();
  one.start(0);
  auto again = client.mutex("job").acquire({.timeout = kLong});
  EXPECT_GT(again.token(), lock.token());
  again.verify(kLong);
  EXPECT_EQ(client.session().endpoint, one.host(0));
  EXPECT_EQ(test::EtcdStore(other.host(0)).keys().size(), 0U) << "nothing went to the other one";
}

// After the wipe, the store that answers does not know the client.
TEST_F(EtcdStores, AHoldIsLostWhenItsStoreIsWipedAndTheClientRecovers) {
  for (const bool another_cluster : {true, false}) {
    SCOPED_TRACE(another_cluster ? "another cluster" : "set back");
    test::EtcdCluster etcd;
    for (int i = 0; i < 50; ++i) etcd.put("filler", std::to_string(i));
    auto client = connect_quietly(url(etcd.host(0)), 20s, "wiped");  // outlives the restart
    auto lock = client.mutex("job").acquire({.timeout = kLong});
    auto next = std::async(std::launch::async,
                           [&] { return client.mutex("job").acquire({.timeout = kLong}); });
    ASSERT_TRUE(eventually("in line", [&] { return etcd.keys("/app/").size() == 2; }));
    etcd.wipe(another_cluster);
    const Stopwatch watch;
    ASSERT_TRUE(eventually("the loss", [&] { return lock.lost_token().stop_requested(); }));
    EXPECT_LT(watch.elapsed(), 10s);
    // A store that was set back may report first that the lease does not exist.
    EXPECT_TRUE(lock.lost_reason() == make_error_code(Errc::store_changed) ||
                (!another_cluster && lock.lost_reason() == make_error_code(Errc::session_expired)))
        << lock.lost_reason().message();
    EXPECT_FALSE(lock.valid());
    auto again = next.get();  // the waiter has joined again by itself
    again.verify(kLong);
    EXPECT_EQ(etcd.keys("/app/").size(), 1U);
    again.release(kLong);
    client.mutex("job").acquire({.timeout = kLong}).release(kLong);
  }
}

// A full store accepts no new keys, but still renews leases.
TEST_F(EtcdStores, HoldsGoOnInAStoreThatIsFullAndJoinsWaitForRoom) {
  test::EtcdOptions options;
  options.flags = {"--quota-backend-bytes=4194304"};
  test::EtcdCluster etcd(options);
  auto client = connect_quietly(url(etcd.host(0)), kEtcdTtl, "holder");
  auto other = connect_quietly(url(etcd.host(0)), kEtcdTtl, "other");
  auto lock = client.mutex("job").acquire({.timeout = kLong});
  auto next = std::async(std::launch::async,
                         [&] { return other.mutex("job").acquire({.timeout = kLong}); });
  ASSERT_TRUE(eventually("in line", [&] { return etcd.keys("/app/").size() == 2; }));
  const std::string much(100'000, 'x');
  bool full = false;
  for (int i = 0; i < 100 && !full; ++i) {
    full = etcd.etcdctl({"put", "filler", much}).code != 0;
  }
  ASSERT_TRUE(full);
  auto late = std::async(std::launch::async,
                         [&] { return other.mutex("free").acquire({.timeout = kLong}); });
  EXPECT_TRUE(wait_until({}, 2 * kEtcdTtl));
  lock.verify(kLong);
  EXPECT_NE(late.wait_for(0s), std::future_status::ready) << "in a store that takes no keys";
  EXPECT_EQ(client.list(), std::vector<std::string>{"job"});
  lock.release(kLong);  // frees space
  auto second = next.get();
  EXPECT_GT(second.token(), lock.token());
  etcd.compact();
  etcd.defragment(0);
  const auto disarmed = etcd.etcdctl({"alarm", "disarm"});
  EXPECT_EQ(disarmed.code, 0) << disarmed.err;
  auto third = late.get();
  third.verify(kLong);
  second.verify(kLong);
  third.release(kLong);
  second.release(kLong);
  EXPECT_TRUE(eventually("no keys are left", [&] { return etcd.keys("/app/").empty(); }));
}

}  // namespace
}  // namespace baton::chaos
