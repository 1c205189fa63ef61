// The names of keys: which ones a client uses again, and what that must not disturb.
#include "etcd/key_slots.h"
#include "fake_etcd_client.h"
#include "fake_etcd_watches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <random>
#include <set>
#include <string>
#include <utility>

namespace baton::etcd {
namespace {

using namespace std::chrono_literals;

// ---- the slots alone

TEST(EtcdKeySlots, SmallestFreeSlotIsTaken) {
  KeySlots slots;
  EXPECT_EQ(slots.take(1, "job/"), KeySlot{0});
  EXPECT_EQ(slots.take(1, "job/"), KeySlot{1});
  EXPECT_EQ(slots.take(1, "job/"), KeySlot{2});
  slots.give_back(1, "job/", KeySlot{1});
  slots.give_back(1, "job/", KeySlot{0});
  EXPECT_EQ(slots.take(1, "job/"), KeySlot{0});
  EXPECT_EQ(slots.take(1, "job/"), KeySlot{1});
  EXPECT_EQ(slots.take(1, "job/"), KeySlot{3});
}

TEST(EtcdKeySlots, LocksAndLeasesHaveTheirOwnSlots) {
  KeySlots slots;
  EXPECT_EQ(slots.take(1, "a/"), KeySlot{0});
  EXPECT_EQ(slots.take(1, "b/"), KeySlot{0});
  EXPECT_EQ(slots.take(2, "a/"), KeySlot{0});
  EXPECT_EQ(slots.size(), 3u);
}

TEST(EtcdKeySlots, SlotThatIsNotGivenBackIsNotTakenUntilTheLeaseEnds) {
  KeySlots slots;
  slots.take(1, "job/");
  for (int n = 0; n < 10; ++n) {
    const KeySlot slot = slots.take(1, "job/");
    EXPECT_EQ(slot, KeySlot{1});
    slots.give_back(1, "job/", slot);
  }
  slots.forget(1);
  EXPECT_EQ(slots.size(), 0u);
  slots.give_back(1, "job/", KeySlot{0});
  EXPECT_EQ(slots.size(), 0u);
}

// No slot is in use twice, no slot is above the most that were in use at once, and nothing is left
// in memory.
TEST(EtcdKeySlots, AnyOrderOfUseKeepsTheRules) {
  std::minstd_rand random{7};
  KeySlots slots;
  std::set<KeySlot> used;
  std::size_t most = 0;
  for (int n = 0; n < 20'000; ++n) {
    const bool take = used.empty() || (used.size() < 40 && random() % 2 == 0);
    if (take) {
      ASSERT_TRUE(used.insert(slots.take(1, "job/")).second);
      most = std::max(most, used.size());
      ASSERT_LT(static_cast<std::size_t>(*used.rbegin()), most);
    } else {
      const auto slot =
          std::next(used.begin(), static_cast<std::ptrdiff_t>(random() % used.size()));
      slots.give_back(1, "job/", *slot);
      used.erase(slot);
    }
  }
  for (const KeySlot slot : used) slots.give_back(1, "job/", slot);
  EXPECT_EQ(slots.size(), 0u);
}

// ---- the keys of a session

class EtcdKeyNames : public ::testing::Test {
 protected:
  // The name of the next key of this lock.
  std::string next_key() {
    ann.settled(ann.join(99));
    const std::string key = ann.keys().back();
    ann.settled(ann.withdraw(99));
    return key;
  }
  void remember_keys() {
    for (const auto& key : ann.keys()) names.insert(key);
  }
  static bool is_read_of(const FakeAsked& asked, const std::string& key) {
    return asked.call == Call::range && asked.as<etcdpb::RangeRequest>().key() == key;
  }

  ManualLoop loop;
  FakeEtcd etcd{loop};
  FakeEtcdClient ann{etcd};
  std::set<std::string> names;
};

TEST_F(EtcdKeyNames, AThousandAcquiresOfOneLockUseOneName) {
  for (std::uint64_t nonce = 1; nonce <= 1'000; ++nonce) {
    ASSERT_TRUE(holder(ann.settled(ann.join(nonce)), nonce));
    remember_keys();
    ann.settled(ann.withdraw(nonce));
  }
  EXPECT_EQ(names.size(), 1u);
}

// The next join waits for the removal, and then has the name that the removal has freed.
TEST_F(EtcdKeyNames, ReleaseAndAcquireAtOnceUseOneName) {
  ann.settled(ann.join(1));
  for (std::uint64_t nonce = 2; nonce <= 20; ++nonce) {
    remember_keys();
    ann.withdraw(nonce - 1);
    ASSERT_TRUE(holder(ann.settled(ann.join(nonce)), nonce));
  }
  EXPECT_EQ(names.size(), 1u);
}

TEST_F(EtcdKeyNames, AQueueUsesAsManyNamesAsItIsLong) {
  constexpr std::uint64_t kTogether = 8;
  std::uint64_t last = 0;
  std::deque<std::uint64_t> queue;
  for (int n = 0; n < 200; ++n) {
    while (queue.size() < kTogether) {
      queue.push_back(++last);
      ASSERT_TRUE(ann.settled(ann.join(last))->ok());
    }
    remember_keys();
    EXPECT_TRUE(holder(ann.settled(ann.look(queue.front())), queue.front()));
    ann.settled(ann.withdraw(queue.front()));
    queue.pop_front();
  }
  EXPECT_EQ(names.size(), kTogether);
}

// The transaction of the first ticket creates its key late, when other tickets have come and gone.
TEST_F(EtcdKeyNames, NameThatALateTransactionMayCreateIsNotUsedAgain) {
  ann.settled(ann.join(50, "other"));  // keeps the lease
  std::string late;
  ann.wire.fate = [&late](const FakeAsked& asked) {
    if (asked.call != Call::txn || !late.empty()) return FakeFate{};
    late = asked.as<etcdpb::TxnRequest>().compare(0).key();
    return lands_after(1'500ms);
  };
  EXPECT_FALSE(ann.settled(ann.join(1))->ok());
  EXPECT_TRUE(ann.settled(ann.withdraw(1))->ok());
  ASSERT_TRUE(holder(ann.settled(ann.join(2)), 2));
  remember_keys();
  ann.pass(3s);
  remember_keys();
  EXPECT_FALSE(names.contains(late));
  EXPECT_EQ(ann.keys().size(), 1u);
  EXPECT_TRUE(holder(ann.settled(ann.look(2)), 2));
}

// A removal that arrives twice does not remove the next key of the same name.
TEST_F(EtcdKeyNames, RemovalThatArrivesLateSparesTheNextTicket) {
  ann.settled(ann.join(1));
  bool first = true;
  ann.wire.fate = [&first](const FakeAsked& asked) {
    return asked.call == Call::txn && std::exchange(first, false) ? lands_after(1'500ms)
                                                                  : FakeFate{};
  };
  EXPECT_FALSE(ann.settled(ann.withdraw(1))->ok());
  remember_keys();
  EXPECT_TRUE(ann.settled(ann.withdraw(1))->ok());
  ASSERT_TRUE(holder(ann.settled(ann.join(2)), 2));
  EXPECT_TRUE(names.contains(ann.keys().at(0)));
  ann.pass(3s);
  EXPECT_TRUE(holder(ann.settled(ann.look(2)), 2));
}

TEST_F(EtcdKeyNames, KeyOfAnotherProgramIsNotTakenForOurs) {
  const std::string key = next_key();
  etcd.put(key);
  const auto joined = ann.settled(ann.join(1));
  ASSERT_TRUE(joined->ok());
  EXPECT_FALSE(holder(joined, 1)) << "the other key is ahead";
  EXPECT_EQ(ann.keys().size(), 2u);
  ann.settled(ann.withdraw(1));
  EXPECT_EQ(ann.keys(), Texts{key});
  ann.pass(1s);
  EXPECT_EQ(ann.keys(), Texts{key}) << "it is not ours to remove";
}

TEST_F(EtcdKeyNames, ManyNamesMayBeTaken) {
  std::string key = next_key();
  ASSERT_EQ(key.back(), '0');
  for (char n = '0'; n <= '4'; ++n) {
    key.back() = n;
    etcd.put(key);
  }
  const auto joined = ann.settled(ann.join(1));
  ASSERT_TRUE(joined->ok());
  EXPECT_EQ(joined->value().view.omitted_ahead, 4u) << "and one that is shown";
  EXPECT_EQ(ann.keys().back().back(), '5');
}

TEST_F(EtcdKeyNames, WithdrawnWhileItsNameIsTakenLeavesNothing) {
  const std::string key = next_key();
  etcd.put(key);
  const auto joined = ann.join(1);
  ann.pass(1ms);
  EXPECT_TRUE(ann.settled(ann.withdraw(1))->ok());
  EXPECT_EQ(joined->error().errc(), Errc::cancelled);
  EXPECT_EQ(ann.keys(), Texts{key});
  etcd.remove(key);
  EXPECT_TRUE(holder(ann.settled(ann.join(2)), 2));
}

TEST_F(EtcdKeyNames, StrayKeyUnderOurLeaseIsRemovedWhenItIsInTheWay) {
  etcd.put(next_key(), etcd.leases().at(0));
  ASSERT_TRUE(ann.settled(ann.join(1))->ok());
  ann.pass(100ms);
  EXPECT_TRUE(holder(ann.settled(ann.look(1)), 1));
}

// Something between client and server has repeated the transaction, and only the second answer
// came. The withdrawal is answered when the key is gone.
TEST_F(EtcdKeyNames, WithdrawnWhileAStrayKeyIsInTheWayRemovesIt) {
  const std::string key = next_key();
  etcd.put(key, etcd.leases().at(0));
  const auto joined = ann.join(1);
  ann.pass(1ms);
  EXPECT_TRUE(ann.settled(ann.withdraw(1))->ok());
  EXPECT_EQ(ann.keys(), Texts{});
  EXPECT_EQ(joined->error().errc(), Errc::cancelled);
}

// While the join that finds a taken name is under way, its lease is retired. The next key needs
// another lease.
TEST_F(EtcdKeyNames, TakenNameOfARetiredLeaseLeadsToAKeyUnderAnotherLease) {
  for (const bool withdrawn : {false, true}) {
    const std::string key = next_key();
    etcd.put(key);
    int txn = 0;  // the answer to the first join is lost after 1 s, that to the second one is late
    ann.wire.fate = [&txn](const FakeAsked& asked) {
      if (asked.call == Call::lease_grant) return FakeFate{.back = 300ms};
      if (asked.call != Call::txn) return FakeFate{};
      ++txn;
      return txn == 1 ? lost_answer() : txn == 2 ? FakeFate{.back = 200ms} : FakeFate{};
    };
    ann.join(2, "other");
    const auto given_up = ann.withdraw(2, "other");
    ann.pass(950ms);
    const auto joined = ann.join(1);
    ann.pass(230ms);
    ASSERT_TRUE(given_up->ok());
    ASSERT_FALSE(joined->got) << "its key is taken, and the next lease is not granted yet";
    if (withdrawn) {
      EXPECT_TRUE(ann.settled(ann.withdraw(1))->ok());
    }
    ann.settled(joined);
    ann.wire.fate = nullptr;
    if (withdrawn) {
      ASSERT_FALSE(joined->ok());
      EXPECT_EQ(joined->error().errc(), Errc::cancelled);
    } else {
      ASSERT_TRUE(joined->ok());
      EXPECT_EQ(ann.keys().size(), 2u);
      EXPECT_TRUE(ann.settled(ann.withdraw(1))->ok());
    }
    ann.pass(1s);
    EXPECT_EQ(ann.keys(), Texts{key});
    etcd.remove(key);
  }
}

// ---- the sweep for stray keys

TEST_F(EtcdKeyNames, SweepSparesATicketThatJoinedSinceTheSweepReadTheKey) {
  const std::string key = next_key();
  etcd.put(key, etcd.leases().at(0));
  bool read = false;
  ann.wire.fate = [&](const FakeAsked& asked) {
    return is_read_of(asked, key) && !std::exchange(read, true) ? FakeFate{.back = 500ms}
                                                                : FakeFate{};
  };
  for (int n = 0; n < 100 && !read; ++n) ann.pass(1s);
  ASSERT_TRUE(read);
  ann.pass(100ms);
  etcd.remove(key);
  ASSERT_TRUE(holder(ann.settled(ann.join(1)), 1));
  ASSERT_EQ(ann.keys(), Texts{key});
  ann.pass(2s);
  EXPECT_TRUE(holder(ann.settled(ann.look(1)), 1));
}

TEST_F(EtcdKeyNames, SweepSparesATicketThatJoinedBeforeTheRemovalArrives) {
  const std::string key = next_key();
  etcd.put(key, etcd.leases().at(0));
  bool removal = false;
  ann.wire.fate = [&](const FakeAsked& asked) {
    return asked.call == Call::txn && !std::exchange(removal, true) ? FakeFate{.there = 500ms}
                                                                    : FakeFate{};
  };
  for (int n = 0; n < 100 && !removal; ++n) ann.pass(1s);
  ASSERT_TRUE(removal);
  etcd.remove(key);
  ASSERT_TRUE(holder(ann.settled(ann.join(1)), 1));
  ASSERT_EQ(ann.keys(), Texts{key});
  ann.pass(2s);
  EXPECT_TRUE(holder(ann.settled(ann.look(1)), 1));
}

// ---- watches

using EtcdNameWatches = EtcdWatchesFixture;

// A late answer shows an earlier key of a name that is in use again. Its watch fires at once, and
// the watch of the newer key stays: a holder that watches it has lost nothing.
TEST_F(EtcdNameWatches, EarlierKeyOfANameDoesNotEndTheWatchOfTheNewerOne) {
  const auto first = etcd.put("k");
  etcd.remove("k");
  const auto newer = watch_new("k");
  pass();
  const auto older = watch("k", first, first);
  EXPECT_TRUE(older->gone());
  EXPECT_TRUE(newer->quiet());
  etcd.remove("k");
  pass();
  EXPECT_TRUE(newer->gone());
}

TEST_F(EtcdNameWatches, WatchOfAnEarlierKeyCanBeGivenUp) {
  const auto first = etcd.put("k");
  etcd.remove("k");
  const auto newer = watch_new("k");
  auto older = std::make_shared<Heard>();
  loop.step([&] {
    older->id = watches->watch({"k", first, first},
                               [older](const WatchNews& news) { older->news.push_back(news); });
    watches->unwatch(older->id);
  });
  pass();
  EXPECT_TRUE(older->quiet());
  EXPECT_TRUE(newer->quiet());
}

}  // namespace
}  // namespace baton::etcd
