// Threads of baton and of gRPC do not take signals that are meant for the program.
#include "support/certificates.h"
#include "support/child.h"
#include "support/etcd_server.h"

#include <gtest/gtest.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

namespace baton::chaos {
namespace {

class EtcdSignals : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!test::etcd_installed()) GTEST_SKIP() << "no etcd on this machine";
  }
  // The program connects with no signal blocked. Then it blocks SIGTERM and waits for it.
  static void expect_clean_end(const std::vector<std::string>& arguments) {
    test::Child child(arguments);
    std::string open;
    auto line = child.line();
    for (; line && line->starts_with("open"); line = child.line()) open += *line + "\n";
    EXPECT_EQ(open, "") << "threads that would take a signal";
    ASSERT_EQ(line, "ready");
    child.signal(SIGTERM);
    EXPECT_EQ(child.line(), "term");
    EXPECT_EQ(child.exit_code(), 0);
  }
};

TEST_F(EtcdSignals, AProgramThatWaitsForSigtermEndsCleanly) {
  const test::EtcdCluster etcd;
  expect_clean_end({"sigwait", "etcd://" + etcd.hosts() + "/app", "job"});
}

// gRPC looks up names in other threads than addresses.
TEST_F(EtcdSignals, AProgramThatConnectsByNameEndsCleanly) {
  const test::EtcdCluster etcd;
  const auto url = "etcd://localhost:" + std::to_string(etcd.client_port(0)) + "/app";
  expect_clean_end({"sigwait", url, "job"});
}

TEST_F(EtcdSignals, AProgramThatUsesTlsEndsCleanly) {
  if (!test::openssl_installed()) GTEST_SKIP() << "no openssl on this machine";
  test::EtcdOptions options;
  options.tls = true;
  options.certificates = std::make_shared<test::TestCertificates>();
  const test::EtcdCluster etcd(options);
  expect_clean_end(
      {"sigwait", "etcds://" + etcd.hosts() + "/app", "job", options.certificates->ca()});
}

}  // namespace
}  // namespace baton::chaos
