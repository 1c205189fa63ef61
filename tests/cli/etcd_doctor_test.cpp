// `baton doctor` on real etcd servers.
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "server_bugs.h"
#include "support/baton_process.h"
#include "support/etcd_server.h"

namespace baton::cli::test {
namespace {

using ::baton::test::EtcdCluster;
using ::baton::test::EtcdOptions;

class EtcdDoctor : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!::baton::test::etcd_installed()) GTEST_SKIP() << "etcd is not installed";
  }

  // The URL of a server that the test starts, or of the servers that BATON_TEST_ETCD names.
  static std::string url() {
    static const auto given = ::baton::test::etcd_from_environment();
    static const auto own = given ? nullptr : std::make_unique<EtcdCluster>();
    return "etcd://" + (given ? *given : own->hosts()) + "/doctor-test";
  }

  static nlohmann::json report(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"--url", url(), "doctor", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    BatonProcess process(words);
    EXPECT_EQ(process.wait(), 0) << process.err();
    return nlohmann::json::parse(process.out());
  }
};

TEST_F(EtcdDoctor, ReportsVersionTimeoutAndRoundTrip) {
  const auto found = report();
  EXPECT_EQ(found["backend"], "etcd");
  ASSERT_TRUE(found["server_version"].is_string()) << found;
  EXPECT_EQ(found["server_version"].get<std::string>().substr(0, 2), "3.") << found;
  EXPECT_EQ(found["session_timeout_ms"], 10'000);
  EXPECT_GT(found["inspect_us"], 0);
  EXPECT_GT(found["acquire_release_us"], 0);

  BatonProcess text({"--url", url(), "doctor"});
  EXPECT_EQ(text.wait(), 0) << text.err();
  for (const char* word : {"server version", "session timeout", "10s", "acquire + release"}) {
    EXPECT_NE(text.out().find(word), std::string::npos) << word << "\n" << text.out();
  }
  BatonProcess ls({"--url", url(), "ls"});
  EXPECT_EQ(ls.wait(), 0) << ls.err();
  EXPECT_EQ(ls.out(), "") << "the probe leaves nothing behind";
}

TEST_F(EtcdDoctor, WarnsOfEveryBugThatTheServersVersionHas) {
  const auto found = report();
  const auto version = found["server_version"].get<std::string>();
  nlohmann::json expected = nlohmann::json::array();
  for (const auto& bug : known_bugs("etcd", version)) {
    expected.push_back("server " + version + ": " + bug);
  }
  EXPECT_EQ(found["warnings"], expected);
}

// The shortest timeout that a server grants is one and a half election timeouts, in whole seconds.
TEST_F(EtcdDoctor, TellsTheTimeoutThatTheServerGrants) {
  EtcdOptions options;
  options.election = std::chrono::milliseconds(2'000);
  EtcdCluster slow(options);
  BatonProcess process(
      {"--url", "etcd://" + slow.hosts(), "--session-timeout", "1s", "doctor", "--json"});
  EXPECT_EQ(process.wait(), 0) << process.err();
  EXPECT_EQ(nlohmann::json::parse(process.out())["session_timeout_ms"], 3'000);
  EXPECT_NE(process.err().find("the server grants 3000 ms"), std::string::npos) << process.err();
}

TEST_F(EtcdDoctor, SpeaksTlsAndSaysWhyItCannot) {
  if (!::baton::test::openssl_installed()) GTEST_SKIP() << "openssl is not installed";
  EtcdOptions options;
  options.tls = true;
  EtcdCluster secure(options);
  const std::string there = "etcds://" + secure.hosts();
  const auto& files = secure.certificates();
  BatonProcess good({"--url", there, "--cacert", files.ca(), "doctor", "--json"});
  EXPECT_EQ(good.wait(), 0) << good.err();
  EXPECT_EQ(nlohmann::json::parse(good.out())["backend"], "etcd");
  BatonProcess bad({"--url", there, "--cacert", files.other_ca(), "doctor"});
  EXPECT_EQ(bad.wait(), 69);
  EXPECT_NE(bad.err().find("not signed by an authority we trust"), std::string::npos) << bad.err();
}

TEST_F(EtcdDoctor, UsersNeedTheirPasswordAndPermissionForTheRoot) {
  EtcdCluster etcd;
  etcd.add_user("svc", "secret", "/app/");
  etcd.enable_auth("of root");
  const auto doctor = [&](const std::string& root, const std::string& password) {
    cli::test::Setup setup;
    setup.env = {{"BATON_PASSWORD", password}};
    BatonProcess process({"--url", "etcd://" + etcd.hosts() + root, "--user", "svc", "doctor"},
                         setup);
    const int code = process.wait();
    EXPECT_NE(process.err().find("sends the password of \"svc\" in the clear"), std::string::npos);
    EXPECT_EQ(process.err().find(password), std::string::npos) << process.err();
    return code;
  };
  EXPECT_EQ(doctor("/app", "secret"), 0);
  EXPECT_EQ(doctor("/app", "not-it-at-all"), 77);
  EXPECT_EQ(doctor("/other", "secret"), 77);
}

TEST_F(EtcdDoctor, NoServerIs69) {
  EtcdCluster gone;
  gone.kill(0);
  BatonProcess process({"--url", "etcd://" + gone.hosts(), "--connect-timeout", "2s", "doctor"});
  EXPECT_EQ(process.wait(), 69) << process.err();
  EXPECT_NE(process.err().find(gone.hosts()), std::string::npos) << process.err();
}

}  // namespace
}  // namespace baton::cli::test
