#include <baton/error.h>
#include <baton/spdlog.h>

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <set>
#include <sstream>
#include <string>
#include <type_traits>

namespace baton {
namespace {

constexpr Errc kAll[] = {Errc::timeout,
                         Errc::cancelled,
                         Errc::closed,
                         Errc::connection_failed,
                         Errc::session_expired,
                         Errc::lock_lost,
                         Errc::not_held,
                         Errc::would_deadlock,
                         Errc::invalid_name,
                         Errc::invalid_argument,
                         Errc::permission_denied,
                         Errc::unsupported,
                         Errc::store_error,
                         Errc::forked,
                         Errc::evicted};

TEST(ErrorCodes, AreErrorCodesOfOneCategory) {
  static_assert(std::is_error_code_enum_v<Errc>);
  std::set<std::string> messages;
  for (const Errc e : kAll) {
    const std::error_code code = e;  // implicit, by is_error_code_enum
    EXPECT_TRUE(code);
    EXPECT_EQ(code.value(), static_cast<int>(e));
    EXPECT_EQ(&code.category(), &error_category());
    EXPECT_EQ(code, e);
    EXPECT_FALSE(code.message().empty());
    EXPECT_TRUE(messages.insert(code.message()).second) << code.message();
  }
  EXPECT_STREQ(error_category().name(), "baton");
  EXPECT_FALSE(std::error_code(0, error_category()));
  EXPECT_FALSE(error_category().message(9999).empty());
}

TEST(ErrorCodes, MeanWhatTheStandardOnesMean) {
  EXPECT_TRUE(std::error_code(Errc::timeout) == std::errc::timed_out);
  EXPECT_TRUE(std::error_code(Errc::permission_denied) == std::errc::permission_denied);
  EXPECT_TRUE(std::error_code(Errc::invalid_argument) == std::errc::invalid_argument);
  EXPECT_FALSE(std::error_code(Errc::closed) == std::errc::timed_out);
}

TEST(ErrorType, CarriesCodeAndText) {
  const Error error(Errc::lock_lost, "release \"a\": gone");
  EXPECT_EQ(error.errc(), Errc::lock_lost);
  EXPECT_EQ(error.code(), Errc::lock_lost);
  EXPECT_STREQ(error.what(), "release \"a\": gone");
  const std::system_error& base = error;
  EXPECT_STREQ(base.what(), "release \"a\": gone");
}

TEST(ErrorType, IsCaughtAsSystemError) {
  try {
    throw Error(Errc::timeout, "late");
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), Errc::timeout);
    EXPECT_STREQ(error.what(), "late");
  }
}

TEST(ErrorType, CopiesWithoutThrowing) {
  static_assert(std::is_nothrow_copy_constructible_v<Error>);
  static_assert(std::is_nothrow_copy_assignable_v<Error>);
  static_assert(std::is_nothrow_move_constructible_v<Error>);
  const Error error(Errc::timeout, std::string(10'000, 'x'));
  Error copy = error;
  EXPECT_EQ(copy.what(), std::string(10'000, 'x'));
  copy = Error(Errc::closed, "other");
  EXPECT_EQ(copy.errc(), Errc::closed);
  EXPECT_STREQ(copy.what(), "other");
}

TEST(ToSpdlog, HandsLevelsAndTextsOn) {
  std::ostringstream out;
  const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(out);
  const auto logger = std::make_shared<spdlog::logger>("t", sink);
  logger->set_level(spdlog::level::debug);
  logger->set_pattern("%l %v");
  const auto log = to_spdlog(logger);
  log(LogLevel::debug, "one");
  log(LogLevel::info, "two");
  log(LogLevel::warning, "three {} {}");  // braces are text, not format
  log(LogLevel::error, std::string_view("four-cut", 4));
  EXPECT_EQ(out.str(), "debug one\ninfo two\nwarning three {} {}\nerror four\n");
}

}  // namespace
}  // namespace baton
