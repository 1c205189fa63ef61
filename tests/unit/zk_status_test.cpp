#include "zk/status.h"

#include "common/base/secret.h"
#include "common/seam/session.h"
#include "support/temp_dir.h"

#include <gtest/gtest.h>
#include <zookeeper/zookeeper.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace baton::zk {
namespace {

struct Row {
  int code;
  Status status;
};

// Every value of ZOO_ERRORS.
constexpr Row kTable[] = {
    {ZOK, Status::ok},
    {ZNONODE, Status::no_node},
    {ZNODEEXISTS, Status::node_exists},
    // The request may have been executed, or may still be executed. The caller must find out.
    {ZSYSTEMERROR, Status::lost},
    {ZRUNTIMEINCONSISTENCY, Status::lost},
    {ZCONNECTIONLOSS, Status::lost},
    {ZMARSHALLINGERROR, Status::lost},
    {ZOPERATIONTIMEOUT, Status::lost},
    {ZINVALIDSTATE, Status::lost},
    {ZCLOSING, Status::lost},
    {ZSESSIONMOVED, Status::lost},
    {ZNOTREADONLY, Status::lost},
    {ZTHROTTLEDOP, Status::lost},
    {ZSESSIONEXPIRED, Status::expired},
    {ZNOAUTH, Status::no_auth},
    {ZINVALIDACL, Status::no_auth},
    {ZAUTHFAILED, Status::auth_failed},
    {ZUNIMPLEMENTED, Status::unimplemented},
    {ZNOCHILDRENFOREPHEMERALS, Status::ephemeral_parent},
    // Refused by the server, or by the C client before it sent the request.
    {ZDATAINCONSISTENCY, Status::failed},
    {ZBADARGUMENTS, Status::failed},
    {ZNEWCONFIGNOQUORUM, Status::failed},
    {ZRECONFIGINPROGRESS, Status::failed},
    {ZSSLCONNECTIONERROR, Status::failed},
    {ZAPIERROR, Status::failed},
    {ZBADVERSION, Status::failed},
    {ZNOTEMPTY, Status::failed},
    {ZINVALIDCALLBACK, Status::failed},
    {ZNOTHING, Status::failed},
    {ZEPHEMERALONLOCALSESSION, Status::failed},
    {ZNOWATCHER, Status::failed},
    {ZRECONFIGDISABLED, Status::failed},
    {ZSESSIONCLOSEDREQUIRESASLAUTH, Status::failed},
};

TEST(ZkStatusTest, EveryCodeOfTheClientHasItsMeaning) {
  for (const auto& row : kTable) {
    EXPECT_EQ(status_of(row.code), row.status) << row.code << " " << zerror(row.code);
  }
}

TEST(ZkStatusTest, UnknownCodesAreFailures) {
  EXPECT_EQ(status_of(-999), Status::failed);
  EXPECT_EQ(status_of(1), Status::failed);
}

TEST(ZkStatusTest, TextNamesTheCode) {
  EXPECT_EQ(text_of(ZNONODE), "no node (-101)");
  EXPECT_NE(text_of(-999).find("(-999)"), std::string::npos);
}

TEST(ZkStatusTest, OnlyWhatWasLostIsWorthAnotherTry) {
  for (const auto& row : kTable) {
    const Error error = call_error(row.status, row.code, "create /app/job");
    EXPECT_EQ(transient(error), row.status == Status::lost) << row.code;
    EXPECT_NE(std::string(error.what()).find("create /app/job"), std::string::npos);
  }
}

TEST(ZkStatusTest, ErrorsSayWhatToDo) {
  const auto code = [](Status status) { return call_error(status, 0, "x").errc(); };
  EXPECT_EQ(code(Status::lost), Errc::connection_failed);
  EXPECT_EQ(code(Status::expired), Errc::session_expired);
  EXPECT_EQ(code(Status::no_auth), Errc::permission_denied);
  EXPECT_EQ(code(Status::auth_failed), Errc::permission_denied);
  EXPECT_EQ(code(Status::unimplemented), Errc::unsupported);
  for (const auto status : {Status::ok, Status::no_node, Status::node_exists,
                            Status::ephemeral_parent, Status::failed}) {
    EXPECT_EQ(code(status), Errc::store_error);
  }
  const std::string denied = call_error(Status::no_auth, ZNOAUTH, "x").what();
  EXPECT_NE(denied.find("credentials"), std::string::npos);
  const std::string old = call_error(Status::unimplemented, ZUNIMPLEMENTED, "x").what();
  EXPECT_NE(old.find("3.5"), std::string::npos);
}

// ---- passwords

constexpr const char* kSecret = "correct horse battery staple";

class ReadPassword : public ::testing::Test {
 protected:
  ~ReadPassword() override { ::unsetenv("BATON_TEST_PASSWORD"); }
  Credentials from_file(const std::string& content) const {
    std::ofstream(file, std::ios::binary) << content;
    return {"ann", file, ""};
  }
  static Credentials from_env() { return {"ann", "", "BATON_TEST_PASSWORD"}; }
  // The error names the file or the variable, and does not show its content.
  static void expect_refused(const Credentials& credentials, const std::string& names) {
    const auto result = read_password(credentials);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().errc(), Errc::invalid_argument);
    const std::string what = result.error().what();
    EXPECT_NE(what.find(names), std::string::npos) << what;
    EXPECT_EQ(what.find("horse"), std::string::npos) << what;
    EXPECT_LT(what.size(), 400u);
  }
  test::TempDir temp;
  const std::string file = temp / "password";
};

TEST_F(ReadPassword, FirstLineOfTheFileCounts) {
  const std::string secret = kSecret;
  EXPECT_EQ(read_password(from_file(secret)).value(), secret);
  EXPECT_EQ(read_password(from_file(secret + "\n")).value(), secret);
  EXPECT_EQ(read_password(from_file(secret + "\r\n")).value(), secret);
  EXPECT_EQ(read_password(from_file(secret + "\nmore\n")).value(), secret);
  EXPECT_EQ(read_password(from_file(" " + secret + " \n")).value(), " " + secret + " ")
      << "blanks stay";
  EXPECT_EQ(read_password(from_file("a\rb\n")).value(), "a\rb") << "only the end of the line goes";
}

TEST_F(ReadPassword, VariableCountsAsItIs) {
  ::setenv("BATON_TEST_PASSWORD", kSecret, 1);
  EXPECT_EQ(read_password(from_env()).value(), kSecret);
}

TEST_F(ReadPassword, FileGoesBeforeTheVariable) {
  ::setenv("BATON_TEST_PASSWORD", "other", 1);
  auto both = from_file(kSecret);
  both.password_env = "BATON_TEST_PASSWORD";
  EXPECT_EQ(read_password(both).value(), kSecret);
}

TEST_F(ReadPassword, EmptyFirstLineIsRefused) {
  expect_refused(from_file(""), file);
  expect_refused(from_file("\n"), file);
  expect_refused(from_file("\r\n"), file);
  expect_refused(from_file(std::string("\n") + kSecret), file);
}

TEST_F(ReadPassword, MissingFileIsRefused) { expect_refused({"ann", file, ""}, file); }

TEST_F(ReadPassword, DirectoryIsRefused) { expect_refused({"ann", temp / "", ""}, temp / ""); }

TEST_F(ReadPassword, MissingOrEmptyVariableIsRefused) {
  ::unsetenv("BATON_TEST_PASSWORD");
  expect_refused(from_env(), "BATON_TEST_PASSWORD");
  ::setenv("BATON_TEST_PASSWORD", "", 1);
  expect_refused(from_env(), "BATON_TEST_PASSWORD");
}

TEST_F(ReadPassword, UserWithoutPasswordIsRefused) {
  expect_refused({"ann", "", ""}, "password_file");
}

TEST_F(ReadPassword, LongestIs4096Bytes) {
  std::string longest = kSecret;
  longest.resize(4096, 'x');
  EXPECT_EQ(read_password(from_file(longest)).value(), longest);
  EXPECT_EQ(read_password(from_file(longest + "\r\n")).value(), longest);
  expect_refused(from_file(longest + "x"), "4096");
  expect_refused(from_file(longest + std::string(1'000'000, 'x')), "4096");
  ::setenv("BATON_TEST_PASSWORD", longest.c_str(), 1);
  EXPECT_EQ(read_password(from_env()).value(), longest);
  ::setenv("BATON_TEST_PASSWORD", (longest + "x").c_str(), 1);
  expect_refused(from_env(), "4096");
}

}  // namespace
}  // namespace baton::zk
