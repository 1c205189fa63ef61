// Keys and values of the etcd store.
#include "etcd/path.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace baton::etcd {
namespace {

using namespace std::string_literals;
using std::chrono::milliseconds;
using Wall = std::chrono::system_clock::time_point;

TEST(EtcdPathTest, KeysOfALockBeginWithItsName) {
  EXPECT_EQ(lock_prefix("/app", "a/b"), "/app/a/b/");
  EXPECT_EQ(lock_prefix("", "a/b"), "a/b/");
}

TEST(EtcdPathTest, RecordOfTheTokenBaseLiesRightBelowTheRoot) {
  EXPECT_EQ(token_base_key("/app"), "/app/~token_base");
  EXPECT_EQ(token_base_key(""), "~token_base");
}

TEST(EtcdPathTest, RangeEndIsTheFirstKeyBehindAll) {
  EXPECT_EQ(range_end_of("/app/job/"), "/app/job0");
  EXPECT_EQ(range_end_of("a\x7f"s), "a\x80"s);
  EXPECT_EQ(range_end_of("a\xff"s), "b");
  EXPECT_EQ(range_end_of("a\xff\xff"s), "b");
}

TEST(EtcdPathTest, RangeEndBehindEverythingIsEtcdsZeroByte) {
  EXPECT_EQ(range_end_of(""), "\0"s);
  EXPECT_EQ(range_end_of("\xff\xff"s), "\0"s);
}

TEST(EtcdPathTest, KeyIsLeaseAndSlot) {
  EXPECT_EQ(entry_key("/app/job/", 0x694d8f7f3, KeySlot{12}), "/app/job/694d8f7f3-12");
  EXPECT_EQ(entry_key("p/", -1, KeySlot{std::numeric_limits<std::uint64_t>::max()}),
            "p/ffffffffffffffff-18446744073709551615");
}

TEST(EtcdPathTest, OnlyDirectKeysAreEntries) {
  EXPECT_TRUE(is_direct_entry("/app/job/", "/app/job/1-1"));
  EXPECT_TRUE(is_direct_entry("/app/job/", "/app/job/anybody's"));
  EXPECT_FALSE(is_direct_entry("/app/job/", "/app/job/sub/1-1"));
  EXPECT_FALSE(is_direct_entry("/app/job/", "/app/job/"));
  EXPECT_FALSE(is_direct_entry("/app/job/", "/app/job/1/"));
  EXPECT_FALSE(is_direct_entry("/app/job/", "/app/jobs/1-1"));
  EXPECT_FALSE(is_direct_entry("/app/job/", "/app"));
  EXPECT_FALSE(is_direct_entry("/app/job/", "/app/job/~token_base")) << "of the root /app/job";
  EXPECT_TRUE(is_direct_entry("/app/job/", "/app/job/~token_bases"));
}

TEST(EtcdPathTest, EntryIdsNameTheRevision) {
  EXPECT_EQ(format_entry_id("/app/job/", "/app/job/694d-12", 4711), "694d-12@4711");
  const auto id = parse_entry_id("694d-12@4711");
  ASSERT_TRUE(id);
  EXPECT_EQ(id->suffix, "694d-12");
  EXPECT_EQ(id->revision, 4711);
}

TEST(EtcdPathTest, EntryIdsWithoutRevisionMeanAny) {
  for (const char* text :
       {"694d-12", "@5", "a@", "a@x", "a@0", "a@-3", "a@5x", "a@99999999999999999999"}) {
    const auto id = parse_entry_id(text);
    ASSERT_TRUE(id) << text;
    EXPECT_EQ(id->suffix, text);
    EXPECT_EQ(id->revision, 0) << text;
  }
}

TEST(EtcdPathTest, ForeignNamesMayContainTheSign) {
  const auto id = parse_entry_id("user@host@77");
  EXPECT_EQ(id->suffix, "user@host");
  EXPECT_EQ(id->revision, 77);
}

TEST(EtcdPathTest, WhatCannotBeAnEntryHasNoId) {
  EXPECT_FALSE(parse_entry_id(""));
  EXPECT_FALSE(parse_entry_id("sub/1-1@5"));
}

TEST(EtcdPathTest, LockOfAKey) {
  EXPECT_EQ(lock_of_key("/app", "/app/a/b/1-1"), "a/b");
  EXPECT_EQ(lock_of_key("", "a/b/1-1"), "a/b");
  EXPECT_EQ(lock_of_key("", "a/1-1"), "a");
}

TEST(EtcdPathTest, KeysOfNoLock) {
  EXPECT_FALSE(lock_of_key("/app", "/app"));
  EXPECT_FALSE(lock_of_key("/app", "/app/"));
  EXPECT_FALSE(lock_of_key("/app", "/app/alone"));
  EXPECT_FALSE(lock_of_key("/app", "/app/~token_base"));
  EXPECT_FALSE(lock_of_key("/app", "/app/job/~token_base")) << "of the root /app/job";
  EXPECT_FALSE(lock_of_key("", "~token_base"));
  EXPECT_FALSE(lock_of_key("/app", "/app/job/"));
  EXPECT_FALSE(lock_of_key("/app", "/apple/job/1-1"));
  EXPECT_FALSE(lock_of_key("/app", "/other/job/1-1"));
  EXPECT_FALSE(lock_of_key("", "alone"));
  EXPECT_FALSE(lock_of_key("", "/job/1-1")) << "no lock name begins with a slash";
  EXPECT_FALSE(lock_of_key("/app", "/app/a//1-1"));
  EXPECT_FALSE(lock_of_key("/app", "/app/\x01/1-1"));
}

TEST(EtcdPathTest, ValuesComeBack) {
  const Wall since{milliseconds(1'700'000'000'123)};
  for (const std::string label : {"", "host 17", "with  spaces ", "h\xc3\xb6st"}) {
    const auto value = decode_value(encode_value(label, since));
    ASSERT_TRUE(value) << label;
    EXPECT_EQ(value->label, label);
    EXPECT_EQ(value->since, since);
  }
}

TEST(EtcdPathTest, ForeignValuesGiveNothing) {
  for (const std::string value :
       {"", "host", "baton", "baton/1", "baton/1 ", "baton/1 5", "baton/1 x y", "baton/1 -5 label",
        "baton/2 5 label", "baton/1  5 label", "baton/1 99999999999999999999 label"}) {
    EXPECT_FALSE(decode_value(value)) << value;
  }
  EXPECT_FALSE(decode_value("\xff\x00\x01"s));
}

TEST(EtcdPathTest, AbsurdValuesAreBounded) {
  const auto value = decode_value("baton/1 9223372036854775807 " + std::string(100'000, 'x'));
  ASSERT_TRUE(value);
  EXPECT_GT(value->since.time_since_epoch().count(), 0) << "no overflow";
  EXPECT_LE(value->label.size(), 256u);
}

}  // namespace
}  // namespace baton::etcd
