#include "common/seam/url.h"

#include <gtest/gtest.h>

#include <string>

namespace baton::internal {
namespace {

std::string fault(const std::string& url) {
  const auto result = parse_url(url);
  if (result) return "";
  EXPECT_EQ(result.error().errc(), Errc::invalid_argument) << url;
  return result.error().what();
}

TEST(Url, MemoryNames) {
  EXPECT_EQ(parse_url("memory:")->memory_name, "");
  EXPECT_EQ(parse_url("memory:")->kind, StoreKind::memory);
  EXPECT_EQ(parse_url("memory:orders-1.test_x")->memory_name, "orders-1.test_x");
  for (const std::string bad : {"memory:a b", "memory:a/b", "memory://x", "memory:a\nb"}) {
    EXPECT_NE(fault(bad), "") << bad;
  }
  EXPECT_NE(fault("memory:" + std::string(100'000, 'a')), "");
}

TEST(Url, FileDirectories) {
  EXPECT_EQ(parse_url("file:///var/lib/baton")->directory, "/var/lib/baton");
  EXPECT_EQ(parse_url("file:///var/lib/baton/")->directory, "/var/lib/baton");
  EXPECT_EQ(parse_url("file:///var/lib/baton///")->directory, "/var/lib/baton");
  EXPECT_EQ(parse_url("file:///a%20b/%C3%A4")->directory, "/a b/\xc3\xa4");
  EXPECT_EQ(parse_url("file:///a%2fb")->directory, "/a/b");
  EXPECT_EQ(parse_url("file:///x")->kind, StoreKind::file);
}

TEST(Url, FileRefusals) {
  for (const std::string& bad :
       {std::string("file:"), std::string("file:/"), std::string("file://"),
        std::string("file:///"), std::string("file:////"), std::string("file://relative"),
        std::string("file:relative"), std::string("file://host/dir"), std::string("file:///a%"),
        std::string("file:///a%2"), std::string("file:///a%zz"), std::string("file:///a%00b"),
        std::string("file:///a%+1"), std::string("file:///a%-1"), std::string("file:///a?x=1"),
        std::string("file:///a#b"), std::string("file:///a\0b", 11),
        "file:///" + std::string(20'000, 'a')}) {
    EXPECT_NE(fault(bad), "") << bad.substr(0, 40);
  }
}

TEST(Url, Servers) {
  const auto zk = parse_url("zk://h1:2181,h2:2182,10.0.0.5:2183/app/x");
  ASSERT_TRUE(zk);
  EXPECT_EQ(zk->kind, StoreKind::zk);
  EXPECT_FALSE(zk->tls);
  EXPECT_EQ(zk->root, "/app/x");
  EXPECT_EQ(zk->endpoints, (std::vector<Endpoint>{{"h1", 2181}, {"h2", 2182}, {"10.0.0.5", 2183}}));
  const auto etcd = parse_url("etcd://a:1");
  ASSERT_TRUE(etcd);
  EXPECT_EQ(etcd->kind, StoreKind::etcd);
  EXPECT_EQ(etcd->root, "");
  EXPECT_EQ(parse_url("etcd://a:1/")->root, "");
  const auto etcds = parse_url("etcds://[::1]:2379,[fe80::1]:65535/r");
  ASSERT_TRUE(etcds);
  EXPECT_TRUE(etcds->tls);
  EXPECT_EQ(etcds->endpoints, (std::vector<Endpoint>{{"::1", 2379}, {"fe80::1", 65535}}));
}

TEST(Url, BadEndpoints) {
  for (const std::string bad :
       {"zk://",         "zk:///root",   "zk:",          "zk:h:1",
        "zk://h",        "zk://h:",      "zk://:2181",   "zk://h:0",
        "zk://h:99999",  "zk://h:65536", "zk://h:-1",    "zk://h:+1",
        "zk://h: 1",     "zk://h:1x",    "zk://h:0x10",  "zk://h:18446744073709551617",
        "zk://::1:2181", "zk://fe80::1", "zk://[::1]",   "zk://[::1:2181",
        "zk://[]:1",     "zk://[h]:1",   "zk://h:1,",    "zk://,h:1",
        "zk://h:1,,g:1", "zk://h:1,h:1", "zk://h h:1",   "zk://h\n:1",
        "etcd://",       "etcds://h",    "zk://h:1?x=y", "zk://h:1#x"}) {
    EXPECT_NE(fault(bad), "") << bad;
  }
}

TEST(Url, TokenBase) {
  for (const std::string store : {"memory:", "memory:x", "file:///d", "zk://h:1", "zk://h:1/r",
                                  "etcd://h:1", "etcd://h:1/", "etcds://h:1/r/s"}) {
    ASSERT_TRUE(parse_url(store)) << store;
    EXPECT_EQ(parse_url(store)->token_base, 0U) << store;
    const auto url = parse_url(store + "?token_base=1800000000000000");
    ASSERT_TRUE(url) << url.error().what();
    EXPECT_EQ(url->token_base, 1'800'000'000'000'000U);
    EXPECT_EQ(url->root, parse_url(store)->root) << store;
    EXPECT_EQ(url->directory, parse_url(store)->directory) << store;
    EXPECT_EQ(url->memory_name, parse_url(store)->memory_name) << store;
    EXPECT_EQ(url->endpoints, parse_url(store)->endpoints) << store;
    EXPECT_EQ(parse_url(store + "?token_base=0")->token_base, 0U);
    EXPECT_EQ(parse_url(store + "?token_base=4611686018427387904")->token_base,
              std::uint64_t{1} << 62);
    for (const std::string bad : {"?",
                                  "?token_base",
                                  "?token_base=",
                                  "?token_base=-1",
                                  "?token_base=+1",
                                  "?token_base= 1",
                                  "?token_base=1 ",
                                  "?token_base=1x",
                                  "?token_base=0x10",
                                  "?token_base=1.5",
                                  "?token_base=1e15",
                                  "?token_base=4611686018427387905",
                                  "?token_base=18446744073709551616",
                                  "?token_base=1?token_base=1",
                                  "?token_base=1&token_base=1",
                                  "?token_base=1&",
                                  "?token_base=1&x=2",
                                  "?x=1",
                                  "?Token_base=1",
                                  "?token_base%3D1",
                                  "?token_base=1#x",
                                  "?token_base=1/r"}) {
      EXPECT_NE(fault(store + bad).find("token_base=N"), std::string::npos) << store << bad;
    }
  }
  EXPECT_EQ(parse_url("file:///a%3Ftoken_base=5")->directory, "/a?token_base=5");
}

TEST(Url, AtMost64Endpoints) {
  std::string url = "etcd://h0:1";
  for (int i = 1; i < 64; ++i) url += ",h" + std::to_string(i) + ":1";
  ASSERT_TRUE(parse_url(url));
  EXPECT_EQ(parse_url(url)->endpoints.size(), 64u);
  EXPECT_NE(fault(url + ",h64:1"), "");
}

TEST(Url, BadRoots) {
  for (const std::string bad :
       {"zk://h:1//", "zk://h:1/a//b", "zk://h:1/a/", "zk://h:1/..", "zk://h:1/a/../b",
        "zk://h:1/a b", "zk://h:1/%41", "zk://h:1/zookeeper", "zk://h:1/zookeeper/x"}) {
    EXPECT_NE(fault(bad), "") << bad;
  }
  EXPECT_TRUE(parse_url("zk://h:1/app/zookeeper"));
  EXPECT_TRUE(parse_url("etcd://h:1/zookeeper"));
}

// A password in a URL appears in logs and process lists. So the URL is refused, and the error does
// not show the password.
TEST(Url, PasswordsAreRefusedAndNeverShown) {
  for (const std::string url :
       {"zk://user:canary4711@h:2181/a", "etcd://canary4711@h:2379", "etcds://u:canary4711@h:1,g:2",
        "zk://h:2181/canary4711@x", "zk://user:canary4711@", "canary4711://h:1",
        "http://u:canary4711@h/", "zk://u:canary4711", "file://u:canary4711@h/dir"}) {
    const auto text = fault(url);
    EXPECT_NE(text, "") << url;
    if (!url.starts_with("canary")) {
      EXPECT_EQ(text.find("canary4711"), text.npos) << text;
    }
  }
}

TEST(Url, UnknownSchemes) {
  for (const std::string bad : {"", ":", "x", "redis://h:1", "ZK://h:1", "FILE:///a",
                                " memory:", "//h:1", "memory", "\x1b[31m:x"}) {
    EXPECT_NE(fault(bad), "") << bad;
  }
  for (const char c : fault("\x1b[31m\n:x")) EXPECT_TRUE(c >= 0x20 && c < 0x7f);
  EXPECT_NE(fault(std::string("memory:a\0b", 10)), "");
  EXPECT_NE(fault("zk://" + std::string(1 << 20, 'h') + ":1"), "");
}

}  // namespace
}  // namespace baton::internal
