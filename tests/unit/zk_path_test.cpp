#include "zk/path.h"

#include "common/recipe/queue_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace baton::zk {
namespace {

// ---- entries

TEST(ZkPath, OurEntriesAreNumbered) {
  EXPECT_EQ(sequence_of("AAAAAAAA1-lock-0000000000"), 0);
  EXPECT_EQ(sequence_of("AAAAAAAA1-lock-0000000042"), 42);
  EXPECT_EQ(sequence_of("-lock-0000000007"), 7) << "an id may be empty";
}

TEST(ZkPath, CuratorsEntriesAreNumbered) {
  EXPECT_EQ(sequence_of("_c_0b5c1a6e-3f0a-4a3a-8a6e-9f3f6f8f2b11-lock-0000000001"), 1);
}

TEST(ZkPath, KazoosEntriesAreNumbered) {
  EXPECT_EQ(sequence_of("9e1c0ffee9e1c0ffee9e1c0ffee00000__lock__0000000003"), 3);
}

TEST(ZkPath, OtherChildrenAreNoEntries) {
  for (const char* child : {"",
                            "a",
                            "lock",
                            "lock-",
                            "lock-0000000001",
                            "-lock-",
                            "__lock__",
                            "x-lock",
                            "x-lock-y",
                            "x-lock-1y",
                            "x-lock- 1",
                            "x-lock-+1",
                            "x-lock-1 ",
                            "x-lock--",
                            "x-lock---1",
                            "x-LOCK-1",
                            "x__lock__",
                            "x__lock__y",
                            "x_lock_1",
                            "x__lock_1",
                            "x-write-0000000001",
                            "x__READ__0000000001",
                            "lease-0000000001",
                            "nested",
                            "x-lock-1/2",
                            "x-lock-0x10"}) {
    EXPECT_EQ(sequence_of(child), std::nullopt) << child;
  }
}

TEST(ZkPath, LastMarkDecides) {
  EXPECT_EQ(sequence_of("x-lock-0000000001-lock-0000000002"), 2);
  EXPECT_EQ(sequence_of("x-lock-0000000001__lock__0000000002"), 2);
  EXPECT_EQ(sequence_of("x__lock__0000000001-lock-0000000002"), 2);
  EXPECT_EQ(sequence_of("x-lock-0000000001-lock-"), std::nullopt);
}

TEST(ZkPath, LastNumberIsAnEntryAndExhausted) {
  EXPECT_EQ(sequence_of("x-lock-2147483647"), kLastSequence);
  EXPECT_TRUE(is_exhausted(kLastSequence));
  EXPECT_FALSE(is_exhausted(kLastSequence - 1));
  EXPECT_FALSE(is_exhausted(0));
}

// After 2147483647 old servers continue with negative numbers.
TEST(ZkPath, WrappedNumbersComeAfterAllOthersInOrder) {
  const auto lowest = sequence_of("x-lock--2147483648");
  const auto next = sequence_of("x-lock--2147483647");
  const auto last = sequence_of("x-lock--000000001");
  ASSERT_TRUE(lowest && next && last);
  EXPECT_GT(*lowest, kLastSequence);
  EXPECT_GT(*next, *lowest);
  EXPECT_GT(*last, *next);
  EXPECT_TRUE(is_exhausted(*lowest));
  EXPECT_TRUE(is_exhausted(*last));
  EXPECT_EQ(sequence_of("x__lock__-2147483648"), lowest);
}

TEST(ZkPath, MoreThanTenDigitsAreNoNumber) {
  EXPECT_EQ(sequence_of("x-lock-00000000001"), std::nullopt);
  EXPECT_EQ(sequence_of("x-lock--00000000001"), std::nullopt);
  EXPECT_EQ(sequence_of("x-lock--00000001"), std::nullopt) << "no server writes fewer than nine";
  EXPECT_EQ(sequence_of("x-lock-" + std::string(400, '1')), std::nullopt);
  EXPECT_TRUE(sequence_of("x-lock-1")) << "fewer digits are fine";
}

// The counter of a server has 32 bits, so no server gives this number. But any client may create
// a node with this name. It must not stand first in the list and last in the recipe.
TEST(ZkPath, NumbersBeyond32BitsDoNotTurnTheOrderRound) {
  for (const char* child :
       {"x-lock-2147483648", "x-lock-9999999999", "x-lock--2147483649", "x-lock--4294967295",
        "x-lock--4294967296", "x-lock--4294967297", "x-lock--9999999999", "x__lock__-9999999999"}) {
    const auto number = sequence_of(child);
    if (!number) continue;  // not an entry, which is fine
    EXPECT_GT(*number, kLastSequence) << child;
    EXPECT_GT(rank_of(*number, false), rank_of(kLastSequence, true)) << child;
  }
}

// ---- names

TEST(ZkPath, DirectoryIsRootAndName) {
  EXPECT_EQ(lock_directory("", "a"), "/a");
  EXPECT_EQ(lock_directory("/app", "a/b"), "/app/a/b");
}

TEST(ZkPath, AncestorsComeOutermostFirst) {
  EXPECT_EQ(ancestors_of("/a"), (std::vector<std::string>{"/a"}));
  EXPECT_EQ(ancestors_of("/app/x/y"), (std::vector<std::string>{"/app", "/app/x", "/app/x/y"}));
}

TEST(ZkPath, ClientIdsAreEightSafeCharactersAndDiffer) {
  std::mt19937_64 random(1);
  std::set<std::string> all;
  for (int i = 0; i < 10'000; ++i) {
    const std::string id = format_client_id(random());
    ASSERT_EQ(id.size(), 8u);
    ASSERT_EQ(id.find_first_of("/-* \t\"'\\$"), std::string::npos) << id;
    all.insert(id);
  }
  EXPECT_EQ(all.size(), 10'000u);
}

TEST(ZkPath, EntryIdsOfOneClientDifferAndNoneBeginsAnother) {
  std::set<std::string> prefixes;
  for (std::uint64_t nonce = 0; nonce < 10'000; ++nonce) {
    prefixes.insert(entry_prefix(format_entry_id("AAAAAAAA", Nonce{nonce})));
  }
  ASSERT_EQ(prefixes.size(), 10'000u);
  for (auto it = prefixes.begin(); std::next(it) != prefixes.end(); ++it) {
    ASSERT_FALSE(std::next(it)->starts_with(*it)) << *it;
  }
  const auto longest =
      format_entry_id("AAAAAAAA", Nonce{std::numeric_limits<std::uint64_t>::max()});
  EXPECT_LE(longest.size(), 8u + 11u);
  EXPECT_TRUE(sequence_of(entry_prefix(longest) + "0000000001"));
}

// ---- queues

TEST(ZkPath, QueueIsSortedByNumberWhateverTheKind) {
  const auto queue = make_queue({"z-lock-0000000001", "config", "a__lock__0000000003",
                                 "_c_9-lock-0000000002", "m-lock-0000000000", "sub"});
  ASSERT_EQ(queue.entries.size(), 4u);
  EXPECT_EQ(queue.others, 2u);
  EXPECT_EQ(queue.entries[0], (QueueEntry{0, "m-lock-0000000000"}));
  EXPECT_EQ(queue.entries[1], (QueueEntry{1, "z-lock-0000000001"}));
  EXPECT_EQ(queue.entries[2], (QueueEntry{2, "_c_9-lock-0000000002"}));
  EXPECT_EQ(queue.entries[3], (QueueEntry{3, "a__lock__0000000003"}));
  EXPECT_TRUE(make_queue({}).entries.empty());
}

TEST(ZkPath, PositionNamesTheNearestAhead) {
  const auto queue = make_queue({"a-lock-0000000001", "b-lock-0000000005", "c-lock-0000000009"});
  const auto first = position_of(queue, 1, "a-lock-0000000001");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->ahead, 0u);
  EXPECT_EQ(first->predecessor, nullptr);
  const auto third = position_of(queue, 9, "c-lock-0000000009");
  ASSERT_TRUE(third);
  EXPECT_EQ(third->ahead, 2u);
  ASSERT_NE(third->predecessor, nullptr);
  EXPECT_EQ(third->predecessor->name, "b-lock-0000000005");
}

TEST(ZkPath, PositionNeedsNumberAndName) {
  const auto queue = make_queue({"a-lock-0000000001"});
  EXPECT_FALSE(position_of(queue, 2, "a-lock-0000000001"));
  EXPECT_FALSE(position_of(queue, 1, "b-lock-0000000001"));
  EXPECT_FALSE(position_of(queue, 0, ""));
  EXPECT_FALSE(position_of(make_queue({}), 1, "a-lock-0000000001"));
}

// A ticket with the same number may have come first, so no ticket with this number holds the lock.
TEST(ZkPath, WithTiesEverybodyStandsBehindTheOthers) {
  const auto queue = make_queue({"a-lock-0000000003", "b-lock-0000000007", "c-lock-0000000007",
                                 "d-lock-0000000007", "e-lock-0000000009"});
  for (const char* name : {"b-lock-0000000007", "c-lock-0000000007", "d-lock-0000000007"}) {
    const auto position = position_of(queue, 7, name);
    ASSERT_TRUE(position) << name;
    EXPECT_EQ(position->ahead, 3u) << name;
    ASSERT_NE(position->predecessor, nullptr) << name;
    EXPECT_EQ(position->predecessor->sequence, 7) << name;
    EXPECT_NE(position->predecessor->name, name);
  }
  EXPECT_EQ(position_of(queue, 9, "e-lock-0000000009")->ahead, 4u);
}

TEST(ZkPath, OneOfTwoWithTheFirstNumberNeverHolds) {
  const auto queue = make_queue({"a-lock-0000000000", "b__lock__0000000000"});
  for (const char* name : {"a-lock-0000000000", "b__lock__0000000000"}) {
    const auto position = position_of(queue, 0, name);
    ASSERT_TRUE(position && position->predecessor != nullptr) << name;
    EXPECT_NE(position->predecessor->name, name);
  }
}

// ---- ranks

TEST(ZkPath, RanksAreNeverZeroAndFollowTheNumbers) {
  const std::vector<std::int64_t> numbers{0,
                                          1,
                                          2,
                                          kLastSequence - 1,
                                          kLastSequence,
                                          *sequence_of("x-lock--2147483648"),
                                          *sequence_of("x-lock--0000000001")};
  std::uint64_t last = 0;
  for (const auto number : numbers) {
    EXPECT_GT(rank_of(number, false), last) << number;
    EXPECT_GT(rank_of(number, true), rank_of(number, false)) << "mine comes after a tie";
    last = rank_of(number, true);
  }
}

// Position and recipe must agree on the tickets that are ahead.
TEST(ZkPath, RecipeAgreesWithThePosition) {
  std::mt19937 random(7);
  for (int round = 0; round < 2'000; ++round) {
    std::vector<std::string> children;
    for (std::uint32_t n = 1 + random() % 6; n != 0; --n) {
      children.push_back(std::string(1, static_cast<char>('a' + n)) + "-lock-000000000" +
                         std::to_string(random() % 5));
    }
    const auto queue = make_queue(children);
    for (const auto& mine : queue.entries) {
      const auto position = position_of(queue, mine.sequence, mine.name);
      ASSERT_TRUE(position);
      QueueView view;
      if (position->predecessor != nullptr) {
        view.omitted_ahead = position->ahead - 1;
        view.tickets.push_back({rank_of(position->predecessor->sequence, false), "p", {}});
      }
      view.tickets.push_back({rank_of(mine.sequence, true), mine.name, Nonce{1}});
      const auto judgement = judge(view, Nonce{1});
      ASSERT_EQ(judgement.ahead, position->ahead);
      ASSERT_EQ(judgement.verdict, position->ahead == 0 ? Verdict::holder : Verdict::waiting);
    }
  }
}

// ---- labels

TEST(ZkPath, LabelsComeBackAsTheyWere) {
  for (const std::string label : {"", "host:1234", "Zoë's box", "baton/1 x"}) {
    EXPECT_EQ(decode_label(encode_label(label)), label);
  }
  EXPECT_EQ(decode_label(encode_label(std::string(256, 'x'))), std::string(256, 'x'));
}

TEST(ZkPath, LongLabelOfAStrangerIsCut) {
  const auto label = decode_label(encode_label(std::string(10'000, 'x')));
  ASSERT_TRUE(label);
  EXPECT_EQ(label->size(), 256u);
}

TEST(ZkPath, ForeignDataHasNoLabel) {
  for (const std::string data : {"", "10.0.0.1", "baton", "baton/1", "baton/2 x", "BATON/1 x"}) {
    EXPECT_EQ(decode_label(data), std::nullopt) << data;
  }
  EXPECT_EQ(decode_label(std::string("\0baton/1 x", 10)), std::nullopt);
}

}  // namespace
}  // namespace baton::zk
