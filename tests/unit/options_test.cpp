// Options and URLs are checked before anything is opened.
#include <baton/baton.h>

#include "support/eventually.h"
#include "support/log_capture.h"
#include "support/temp_dir.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

namespace baton {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

std::optional<Errc> connect_error(ClientOptions options,
                                  const std::string& url = "memory:options") {
  auto client = Client::try_connect(url, std::move(options));
  if (client) return std::nullopt;
  return client.error().errc();
}

TEST(Options, SessionTimeoutIsOneSecondToOneDay) {
  for (const milliseconds bad : {milliseconds(0), -1ms, milliseconds::min(), 999ms,
                                 milliseconds(24h) + 1ms, milliseconds::max()}) {
    ClientOptions options;
    options.session_timeout = bad;
    EXPECT_EQ(connect_error(options), Errc::invalid_argument) << bad.count();
  }
  for (const milliseconds good : {milliseconds(1'000), milliseconds(24h), milliseconds(10'000)}) {
    ClientOptions options;
    options.session_timeout = good;
    EXPECT_EQ(connect_error(options), std::nullopt) << good.count();
  }
}

TEST(Options, ConnectTimeoutIsOneMillisecondToOneHour) {
  for (const milliseconds bad :
       {milliseconds(0), -1ms, milliseconds::min(), milliseconds(1h) + 1ms, milliseconds::max()}) {
    ClientOptions options;
    options.connect_timeout = bad;
    EXPECT_EQ(connect_error(options), Errc::invalid_argument) << bad.count();
  }
  ClientOptions options;
  options.connect_timeout = 1h;
  EXPECT_EQ(connect_error(options), std::nullopt);
}

TEST(Options, LabelIsShortCleanUtf8) {
  for (const std::string& bad :
       {std::string(257, 'x'), std::string("a\nb"), std::string("\x1b[31m"), std::string("\x7f"),
        std::string("a\0b", 3), std::string("\xff"), std::string("\xc3"), std::string("\xc0\xaf"),
        std::string("\xed\xa0\x80"), std::string("\xf4\x90\x80\x80"), std::string("\xe2\x82"),
        std::string("\xc2\x9b"
                    "31m"),
        std::string("\xc2\x80")}) {
    ClientOptions options;
    options.label = bad;
    EXPECT_EQ(connect_error(options), Errc::invalid_argument) << ::testing::PrintToString(bad);
  }
  for (const std::string& good :
       {std::string(256, 'x'), std::string("worker 7 \xc3\xa4\xf0\x9f\x94\x92"),
        std::string("<b>\"quoted\"</b>")}) {
    ClientOptions options;
    options.label = good;
    EXPECT_EQ(connect_error(options), std::nullopt) << good;
  }
}

TEST(Options, CredentialsAndTlsMustMakeSense) {
  ClientOptions both;
  both.credentials.password_file = "/f";
  both.credentials.password_env = "E";
  EXPECT_EQ(connect_error(both), Errc::invalid_argument);
  ClientOptions half;
  half.tls.cert_file = "/c";
  EXPECT_EQ(connect_error(half), Errc::invalid_argument);
  ClientOptions other_half;
  other_half.tls.key_file = "/k";
  EXPECT_EQ(connect_error(other_half), Errc::invalid_argument);
}

TEST(Options, BadOptionsTouchNothing) {
  const test::TempDir directory;
  ClientOptions options;
  options.session_timeout = 0ms;
  EXPECT_EQ(connect_error(options, "file://" + directory.path() + "/locks"),
            Errc::invalid_argument);
  EXPECT_FALSE(std::filesystem::exists(directory / "locks"));
}

TEST(Options, BadUrlsAreInvalidArguments) {
  for (const char* bad : {"", "x", "redis://h:1", "zk://", "zk://h:99999", "etcd://u:p@h:1",
                          "file://relative", "file:///", "memory:a b"}) {
    EXPECT_EQ(connect_error({}, bad), Errc::invalid_argument) << bad;
    EXPECT_THROW((void)Client::connect(bad), Error) << bad;
  }
}

TEST(Options, MemoryStoresAreSharedByName) {
  auto a = Client::connect("memory:shared");
  auto b = Client::connect("memory:shared");
  auto c = Client::connect("memory:other");
  auto unnamed = Client::connect("memory:");
  auto lock = a.mutex("x").acquire();
  EXPECT_FALSE(b.mutex("x").try_acquire().has_value());
  EXPECT_TRUE(c.mutex("x").try_acquire());
  EXPECT_TRUE(unnamed.mutex("x").try_acquire());
}

TEST(Options, LogGoesWhereItIsToldTo) {
  const test::LogCapture log;
  ClientOptions options;
  options.log = log.sink();
  auto client = Client::connect("memory:", options);
  client.mutex("x").unlock();
  // A thread of the client writes the line, perhaps after unlock() has returned.
  EXPECT_TRUE(test::eventually("one line", [&] { return log.count(LogLevel::error, "x") == 1; }));
}

// A log function that throws must not end the client.
TEST(Options, LogThatThrowsIsSurvived) {
  ClientOptions options;
  options.log = [](LogLevel, std::string_view) { throw std::runtime_error("log"); };
  auto client = Client::connect("memory:", options);
  client.mutex("x").unlock();
  client.mutex("x").acquire_async({}, [](Result<Lock>) { throw 1; });
  EXPECT_TRUE(client.mutex("x").acquire_for(10s).valid());
}

TEST(Options, MetricsThatThrowAreSurvived) {
  ClientOptions options;
  options.log = [](LogLevel, std::string_view) {};
  options.metrics = [](const MetricEvent&) { throw std::runtime_error("metrics"); };
  auto client = Client::connect("memory:", options);
  EXPECT_TRUE(client.mutex("x").acquire_for(10s).valid());
  EXPECT_TRUE(client.mutex("x").acquire_for(10s).valid());
}

}  // namespace
}  // namespace baton
