#include "common/seam/lock_name.h"

#include <baton/name.h>
#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>
#include <set>
#include <string>

namespace baton {
namespace {

using internal::escape_for_message;
using internal::parse_lock_name;
using internal::parse_name_prefix;

const std::string kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@=+-";

TEST(LockName, EveryByteIsJudgedByTheAlphabet) {
  for (int c = 0; c < 256; ++c) {
    const std::string name = "x" + std::string(1, static_cast<char>(c)) + "y";
    const bool legal = kAlphabet.find(static_cast<char>(c)) != kAlphabet.npos || c == '/';
    EXPECT_EQ(is_valid_name(name), legal) << c;
    EXPECT_EQ(parse_lock_name(name).has_value(), legal) << c;
  }
}

TEST(LockName, LimitsAreExact) {
  EXPECT_TRUE(is_valid_name(std::string(100, 'a')));
  EXPECT_FALSE(is_valid_name(std::string(101, 'a')));
  std::string segments = "a";
  for (int i = 1; i < 8; ++i) segments += "/a";
  EXPECT_TRUE(is_valid_name(segments));
  EXPECT_FALSE(is_valid_name(segments + "/a"));
  const std::string s(99, 'b');
  const std::string four = s + "/" + s + "/" + s + "/" + s;  // 399 bytes
  EXPECT_TRUE(is_valid_name(four));
  EXPECT_TRUE(is_valid_name(four + "c"));
  EXPECT_FALSE(is_valid_name(four + "/c"));
}

TEST(LockName, SegmentsThatLookLikeEntriesAreRefused) {
  for (const char* bad : {"x-lock-1", "-lock-0", "a/x-lock-0000000001", "x-lock-1/a", "__lock__0",
                          "x__lock__0000000007", "_c_abc-lock-0000000003", "a/x-lock--000000005",
                          "x-lock--2147483648", "x__lock__-000000001"}) {
    EXPECT_FALSE(is_valid_name(bad)) << bad;
  }
  for (const char* good : {"lock-1", "lock", "x-lock-1a", "x-lock", "x-locks-1", "x__lock_1",
                           "x-LOCK-1", "lock__1", "1-lock-x", "x-lock---1", "x-lock--", "lock--1",
                           "a/x-lock--5", "x-lock--12345678", "x-lock--12345678901"}) {
    EXPECT_TRUE(is_valid_name(good)) << good;
  }
}

TEST(LockName, DotsAndEmptySegmentsAreRefused) {
  for (const char* bad :
       {"", "/", "//", "/a", "a/", "a//b", ".", "..", "a/.", "a/..", "./a", "../a", "a/../b"}) {
    EXPECT_FALSE(is_valid_name(bad)) << bad;
    EXPECT_EQ(parse_lock_name(bad).error().errc(), Errc::invalid_name);
  }
  EXPECT_TRUE(is_valid_name("..."));
  EXPECT_TRUE(is_valid_name(".a"));
}

TEST(LockName, OversizedInputCostsNothing) {
  const std::string huge(64u << 20, 'a');
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(is_valid_name(huge));
    EXPECT_FALSE(parse_lock_name(huge).has_value());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));
}

TEST(LockName, MessagesAreShortAndHarmless) {
  const std::string nasty = std::string("\x1b[31m\n\"\\\0", 9) + std::string(1000, '\xff');
  const auto result = parse_lock_name(nasty);
  ASSERT_FALSE(result);
  const std::string text = result.error().what();
  EXPECT_LT(text.size(), 300u);
  for (const char c : text) EXPECT_TRUE(c >= 0x20 && c < 0x7f) << text;
  EXPECT_LE(escape_for_message(std::string(1000, 'x'), 64).size(), 67u);
  EXPECT_EQ(escape_for_message("plain"), "plain");
}

TEST(LockName, PrefixIsWhatMayBeginAName) {
  for (const char* good : {"", "a", "a/", "a/b", "a/.", ".", "..", "a-lock-1", "-"}) {
    EXPECT_TRUE(parse_name_prefix(good)) << good;  // each can be the beginning of a legal name
  }
  for (const std::string& bad :
       {std::string("/"), std::string("/a"), std::string("a//"), std::string("../"),
        std::string("a/./"), std::string("a b"), std::string("\n"), std::string("a\0", 2),
        std::string("*"), std::string(101, 'a'), std::string(401, 'a'),
        std::string("a/b/c/d/e/f/g/h/"), std::string("x-lock-1/")}) {
    const auto result = parse_name_prefix(bad);
    ASSERT_FALSE(result) << bad;
    EXPECT_EQ(result.error().errc(), Errc::invalid_name);
  }
}

TEST(EncodeName, LeavesPlainTextAlone) {
  for (const char* text : {"a", "orders", "user@host:80", "v1.2_3+x-y"}) {
    EXPECT_EQ(encode_name(text), text);
  }
}

TEST(EncodeName, EscapesEveryOtherByte) {
  std::set<std::string> seen;
  for (int c = 0; c < 256; ++c) {
    const std::string text(1, static_cast<char>(c));
    const auto name = encode_name(text);
    EXPECT_TRUE(is_valid_name(name)) << c;
    EXPECT_EQ(name.find('/'), name.npos);
    EXPECT_TRUE(seen.insert(name).second) << c;
    const auto inside = encode_name("x" + text + "y");
    EXPECT_TRUE(is_valid_name(inside)) << c;
    EXPECT_TRUE(seen.insert(inside).second) << c;
  }
  EXPECT_EQ(encode_name("a/b"), "a=2Fb");
  EXPECT_EQ(encode_name("a=b"), "a=3Db");
}

TEST(EncodeName, HardTextsGiveLegalNames) {
  std::set<std::string> seen;
  for (const std::string& text :
       {std::string(), std::string("."), std::string(".."), std::string("../.."),
        std::string("x-lock-1"), std::string("__lock__7"), std::string("-lock-"), std::string("="),
        std::string("=="), std::string("=2F"), std::string("/"), std::string(99, 'a') + "..",
        std::string(100, 'a') + ".", std::string(100, 'a') + "..", std::string(94, 'a') + "-lock-1",
        std::string(96, 'a') + "-lock-12345", std::string(300, '/'), std::string(1 << 20, 'z'),
        std::string(1 << 20, '\0')}) {
    const auto name = encode_name(text);
    EXPECT_TRUE(is_valid_name(name)) << name;
    EXPECT_TRUE(seen.insert(name).second) << name;
  }
}

TEST(EncodeName, LongTextsThatDifferAnywhereDiffer) {
  const std::string base(1 << 20, 'q');
  std::set<std::string> seen{encode_name(base)};
  for (const std::size_t at : {0u, 100u, 199u, 200u, 201u, 400u, 1u << 19, (1u << 20) - 1}) {
    auto text = base;
    text[at] = 'r';
    const auto name = encode_name(text);
    EXPECT_TRUE(is_valid_name(name));
    EXPECT_TRUE(seen.insert(name).second) << at;
  }
  EXPECT_TRUE(seen.insert(encode_name(base + "q")).second);
  EXPECT_EQ(encode_name(base).substr(0, 50), base.substr(0, 50)) << "keeps its beginning";
}

// An encoded name is a text, too. Its own encoding must be a different name.
TEST(EncodeName, NamesAreNotConfusedWithTheTextsTheyLookLike) {
  const auto name = encode_name(std::string(1000, 'x'));
  EXPECT_NE(encode_name(name), name);
}

TEST(EncodeName, IsInjectiveOnRandomTexts) {
  std::mt19937 random(3);
  std::map<std::string, std::string> seen;
  const std::string hard = "a.=/-_lock1 \xff" + std::string(1, '\0');
  for (int i = 0; i < 50'000; ++i) {
    std::string text;
    const auto length = random() % (i % 50 == 0 ? 500 : 12);
    for (unsigned k = 0; k < length; ++k) {
      text +=
          random() % 4 == 0 ? std::string("lock") : std::string(1, hard[random() % hard.size()]);
    }
    const auto name = encode_name(text);
    ASSERT_TRUE(is_valid_name(name)) << name;
    const auto [it, fresh] = seen.emplace(name, text);
    ASSERT_TRUE(fresh || it->second == text) << name;
  }
}

}  // namespace
}  // namespace baton
