// What a read of the keys of a lock proves.
#include "etcd/queue.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace baton::etcd {
namespace {

const std::string kPrefix = "/app/job/";

class EtcdQueueTest : public ::testing::Test {
 protected:
  void add(const std::string& suffix, std::int64_t created) {
    auto& kv = *reading.add_kvs();
    kv.set_key(kPrefix + suffix);
    kv.set_create_revision(created);
    reading.set_count(reading.count() + 1);
  }
  void cut_off(std::int64_t hidden) {
    reading.set_more(true);
    reading.set_count(reading.count() + hidden);
  }
  QueueReading mine() { return read_queue(kPrefix, kPrefix + "mine", 50, Nonce{3}, reading); }

  etcdpb::RangeResponse reading;
};

TEST_F(EtcdQueueTest, ShortReadingAsksForTheNewest) {
  const auto request = short_range(kPrefix, 50);
  EXPECT_EQ(request.key(), kPrefix);
  EXPECT_EQ(request.range_end(), "/app/job0");
  EXPECT_EQ(request.limit(), kShortReading);
  EXPECT_EQ(request.max_create_revision(), 50);
  EXPECT_EQ(request.sort_order(), etcdpb::RangeRequest::DESCEND);
  EXPECT_EQ(request.sort_target(), etcdpb::RangeRequest::CREATE);
  EXPECT_TRUE(request.keys_only());
}

TEST_F(EtcdQueueTest, FullReadingHasNoLimit) {
  const auto request = full_range(kPrefix);
  EXPECT_EQ(request.limit(), 0);
  EXPECT_EQ(request.max_create_revision(), 0);
  EXPECT_FALSE(request.serializable());
}

TEST_F(EtcdQueueTest, AloneIsHolder) {
  add("mine", 50);
  const auto result = mine();
  EXPECT_FALSE(result.incomplete);
  ASSERT_EQ(result.standing.view.tickets.size(), 1u);
  EXPECT_EQ(result.standing.view.tickets[0].ours, Nonce{3});
  EXPECT_EQ(result.standing.view.tickets[0].id, "mine@50");
  EXPECT_EQ(result.standing.view.tickets[0].rank, 50u);
  EXPECT_EQ(result.standing.token, 50u);
}

TEST_F(EtcdQueueTest, NewerOnesDoNotCount) {
  add("later", 60);
  add("mine", 50);
  EXPECT_EQ(mine().standing.view.tickets.size(), 1u);
}

TEST_F(EtcdQueueTest, PredecessorIsTheNewestOlderOneInWhateverOrder) {
  add("first", 10);
  add("mine", 50);
  add("third", 40);
  add("second", 30);
  const auto result = mine();
  ASSERT_EQ(result.standing.view.tickets.size(), 2u);
  EXPECT_EQ(result.standing.view.tickets[0].id, "third@40");
  EXPECT_FALSE(result.standing.view.tickets[0].ours);
  EXPECT_EQ(result.standing.view.omitted_ahead, 2u);
}

TEST_F(EtcdQueueTest, RevisionBelowZeroStandsAheadAllTheSame) {
  add("odd", -1);
  add("mine", 50);
  const auto result = mine();
  ASSERT_EQ(result.standing.view.tickets.size(), 2u);
  EXPECT_LT(result.standing.view.tickets[0].rank, 50u) << "nobody may take it for one behind";
}

TEST_F(EtcdQueueTest, CountThatMakesNoSenseIsNotReckonedWith) {
  add("first", 10);
  add("mine", 50);
  reading.set_more(true);
  reading.set_count(std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(mine().standing.view.omitted_ahead, 1u);
}

TEST_F(EtcdQueueTest, EntriesOfLocksBelowDoNotCount) {
  add("sub/1-1", 20);
  add("sub/deep/1-1", 30);
  add("mine", 50);
  const auto result = mine();
  EXPECT_FALSE(result.incomplete);
  EXPECT_EQ(result.standing.view.tickets.size(), 1u);
}

TEST_F(EtcdQueueTest, WithoutMineTheTicketIsGone) {
  add("other", 20);
  const auto result = mine();
  EXPECT_FALSE(result.incomplete);
  EXPECT_TRUE(result.standing.view.tickets.empty());
}

TEST_F(EtcdQueueTest, MineCreatedAnewIsNotThisTicket) {
  add("mine", 55);
  EXPECT_TRUE(mine().standing.view.tickets.empty());
  EXPECT_FALSE(mine().incomplete);
  reading.clear_kvs();
  add("mine", 45);
  EXPECT_TRUE(mine().standing.view.tickets.empty()) << "nor is an older one of that name";
}

// ---- reads that are cut off

TEST_F(EtcdQueueTest, CutOffWithAPredecessorIsEnough) {
  add("mine", 50);
  add("ahead", 40);
  cut_off(7);
  const auto result = mine();
  EXPECT_FALSE(result.incomplete);
  ASSERT_EQ(result.standing.view.tickets.size(), 2u);
  EXPECT_EQ(result.standing.view.tickets[0].id, "ahead@40");
  EXPECT_EQ(result.standing.view.omitted_ahead, 7u);
}

TEST_F(EtcdQueueTest, CutOffNeverMeansOnlyOneAhead) {
  add("mine", 50);
  add("ahead", 40);
  reading.set_more(true);  // the count is too small
  EXPECT_GE(mine().standing.view.omitted_ahead, 1u);
}

TEST_F(EtcdQueueTest, CutOffAfterMineIsIncompleteAndNeverHolder) {
  add("mine", 50);
  cut_off(1);
  EXPECT_TRUE(mine().incomplete);
}

TEST_F(EtcdQueueTest, CutOffWithNothingButNestedKeysAheadIsIncomplete) {
  add("mine", 50);
  for (int n = 0; n < 16; ++n) add("sub/" + std::to_string(n), 49 - n);
  cut_off(1);
  EXPECT_TRUE(mine().incomplete);
}

TEST_F(EtcdQueueTest, CutOffBeforeMineIsIncomplete) {
  for (int n = 0; n < 17; ++n) add("later" + std::to_string(n), 80 - n);
  cut_off(1);
  EXPECT_TRUE(mine().incomplete);
}

TEST_F(EtcdQueueTest, CutOffThatGoesBackBeyondMineShowsThatItIsGone) {
  add("later", 60);
  add("ahead", 40);
  cut_off(3);
  EXPECT_FALSE(mine().incomplete);
  EXPECT_TRUE(mine().standing.view.tickets.empty());
}

}  // namespace
}  // namespace baton::etcd
