// Every store accepts and refuses the same lock names.
#include "conformance/fixture.h"

#include <algorithm>
#include <string>

namespace baton::conformance {
namespace {

std::string repeat(const std::string& text, int n) {
  std::string all;
  for (int i = 0; i < n; ++i) all += text;
  return all;
}

std::vector<std::string> illegal_names() {
  std::vector<std::string> names{"",
                                 "/",
                                 "//",
                                 "a//b",
                                 "/a",
                                 "a/",
                                 "/a/",  // empty segments
                                 ".",
                                 "..",
                                 "a/../b",
                                 "a/./b",
                                 "./a",
                                 "a/..",  // segments that mean a directory
                                 "..%2f",
                                 "%2e%2e",
                                 "a%00b",  // '%' is illegal, and is never decoded
                                 std::string("a\0b", 3),
                                 std::string("\0", 1),
                                 "a\nb",
                                 "a\tb",
                                 "\x1b[31m",
                                 "\x7f",
                                 "\x80",
                                 "\x9f",
                                 "\xc3\x28",
                                 "\xed\xa0\x80",
                                 "\xee\x80\x80",
                                 "\xef\xbf\xb0",
                                 "\xff\xfe",
                                 "\xc3\xa4",
                                 " ",
                                 "a b",
                                 " a",
                                 "a ",
                                 "*",
                                 "$(x)",
                                 "`x`",
                                 "'a'",
                                 "\"a\"",
                                 "<script>",
                                 "a\\b",
                                 "a;b",
                                 "a|b",
                                 "a?b",
                                 "a#b",
                                 "a,b",
                                 "~",
                                 "a!b",
                                 "{a}",
                                 "[a]",
                                 "a&b",
                                 "a^b",
                                 "x-lock-0000000001",
                                 "-lock-1",
                                 "a/_c_0f-lock-7",
                                 "x__lock__0000000001",
                                 "__lock__5",
                                 "a-lock-12/b",  // look like names of entries
                                 std::string(101, 'a'),
                                 "a/" + std::string(101, 'b'),  // segment too long
                                 "a/b/c/d/e/f/g/h/i",           // nine segments
                                 std::string(1 << 20, 'a'),
                                 repeat("a/", 1 << 19) + "a"};
  std::string long_name;
  for (int i = 0; i < 5; ++i) long_name += (i > 0 ? "/" : "") + std::string(i < 4 ? 80 : 77, 'x');
  EXPECT_EQ(long_name.size(), 401u);
  names.push_back(long_name);
  return names;
}

std::vector<std::string> legal_names() {
  std::string longest;
  for (int i = 0; i < 5; ++i) longest += (i > 0 ? "/" : "") + std::string(i < 4 ? 80 : 76, 'x');
  EXPECT_EQ(longest.size(), 400u);
  return {"a",
          "a/b",
          "A",
          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:@=+-",
          std::string(100, 'z'),
          "a/b/c/d/e/f/g/h",
          longest,
          "zookeeper",
          "lock-0000000001",
          "lock",
          "-",
          "-n",
          "--help",
          "...",
          ".hidden",
          "a.",
          "_c_guid",
          "0",
          "x=2F",
          "user@host:80+v-1",
          "con",
          "locks/queue/tmp"};
}

TEST_P(Names, IllegalOnesAreRefusedEverywhere) {
  auto client = open();
  for (const auto& name : illegal_names()) {
    const auto shown = name.substr(0, 40);
    EXPECT_FALSE(is_valid_name(name)) << shown;
    EXPECT_EQ(error_of([&] { (void)client.mutex(name); }), Errc::invalid_name) << shown;
    EXPECT_EQ(error_of([&] { (void)client.inspect(name); }), Errc::invalid_name) << shown;
    EXPECT_EQ(error_of([&] { (void)client.evict(name, "x"); }), Errc::invalid_name) << shown;
  }
  EXPECT_TRUE(client.list().empty());
}

// A message shows a bad name short and escaped, because it may be printed on a terminal.
TEST_P(Names, MessagesShowBadNamesEscapedAndShort) {
  auto client = open();
  for (const auto& name : illegal_names()) {
    try {
      (void)client.mutex(name);
      FAIL() << name.substr(0, 40);
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_LT(text.size(), 600u);
      for (const char c : text) {
        EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f)
            << text;
      }
    }
  }
}

TEST_P(Names, LegalOnesAreLocksOfTheirOwn) {
  auto client = open();
  auto other = open();
  std::vector<Lock> held;
  for (const auto& name : legal_names()) {
    ASSERT_TRUE(is_valid_name(name)) << name;
    held.push_back(client.mutex(name).acquire(patient()));
    EXPECT_EQ(held.back().name(), name);
  }
  auto wanted = legal_names();
  std::sort(wanted.begin(), wanted.end());
  EXPECT_EQ(other.list(), wanted);
  for (const auto& name : legal_names()) {
    EXPECT_FALSE(other.mutex(name).try_acquire().has_value()) << name;
    EXPECT_EQ(other.inspect(name).entries.size(), 1u) << name;
    EXPECT_EQ(other.inspect(name).name, name);
  }
}

TEST_P(Names, DifferInCase) {
  auto client = open();
  auto lower = client.mutex("name").acquire(patient());
  auto upper = client.mutex("NAME").try_acquire();
  EXPECT_TRUE(upper);
}

TEST_P(Names, NestedOnesAreIndependent) {
  auto client = open();
  auto other = open();
  auto a = client.mutex("a").acquire(patient());
  auto ab = other.mutex("a/b").try_acquire();
  ASSERT_TRUE(ab);
  auto abc = client.mutex("a/b/c").try_acquire();
  ASSERT_TRUE(abc);
  EXPECT_EQ(client.inspect("a").entries.size(), 1u);
  EXPECT_EQ(client.inspect("a/b").entries.size(), 1u);
  EXPECT_EQ(client.list(), (std::vector<std::string>{"a", "a/b", "a/b/c"}));
  // Releases and acquires "a" while the inner locks are held, then "a/b" while "a/b/c" is held.
  a.release();
  EXPECT_TRUE(other.mutex("a").try_acquire());
  EXPECT_TRUE(ab->valid());
  ab->verify();
  ab->release();
  EXPECT_TRUE(client.mutex("a/b").try_acquire());
  abc->verify();
  ASSERT_TRUE(in_line("a/b", 0));
  EXPECT_EQ(client.list(), (std::vector<std::string>{"a/b/c"}));
  EXPECT_TRUE(client.inspect("a").entries.empty());
}

TEST_P(Names, WaitersOfNestedLocksDoNotMix) {
  auto client = open();
  auto other = open();
  auto outer = client.mutex("a").acquire(patient());
  auto inner = client.mutex("a/b").acquire(patient());
  auto waiting = later(other.mutex("a"));
  ASSERT_TRUE(in_line("a", 2));
  inner.release();
  EXPECT_EQ(waiting.wait_for(20ms), std::future_status::timeout);
  outer.release();
  ASSERT_TRUE(ready(waiting));
  EXPECT_TRUE(waiting.get().valid());
}

TEST_P(Names, AnyTextBecomesALegalName) {
  auto client = open();
  std::vector<Lock> held;
  std::vector<std::string> texts{"",
                                 "..",
                                 "a/b",
                                 "a b",
                                 "\xff\xff",
                                 std::string(1 << 20, 'x'),
                                 std::string("a\0b", 3),
                                 "../../etc/passwd",
                                 "x-lock-1",
                                 "<script>alert(1)</script>",
                                 "$(reboot)"};
  for (int c = 0; c < 256; ++c) texts.emplace_back(1, static_cast<char>(c));
  for (const auto& text : texts) {
    const auto name = encode_name(text);
    ASSERT_TRUE(is_valid_name(name)) << name;
    auto lock = client.mutex(name).try_acquire();
    ASSERT_TRUE(lock) << name;
    held.push_back(std::move(*lock));
  }
}

}  // namespace
}  // namespace baton::conformance
