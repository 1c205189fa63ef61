// Checks etcd servers with certificates, servers with users, and the program etcdctl.
#include "support/etcd_server.h"
#include "support/eventually.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace baton::test {
namespace {

bool says(const Finished& end, const std::string& text) {
  return end.out.find(text) != end.out.npos || end.err.find(text) != end.err.npos;
}

class EtcdSecure : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!etcd_installed() || !etcdctl_installed()) GTEST_SKIP() << "no etcd on this machine";
    if (!openssl_installed()) GTEST_SKIP() << "no openssl on this machine";
  }
};

TEST(Run, TellsTheEndAndTheOutput) {
  const auto end = run({"sh", "-c", "echo out; echo $NAME >&2; exit 7"}, {"NAME=err"});
  EXPECT_EQ(end.code, 7);
  EXPECT_EQ(end.out, "out\n");
  EXPECT_EQ(end.err, "err\n");
  EXPECT_EQ(run({"sh", "-c", "kill -TERM $$"}).code, 128 + 15);
  EXPECT_THROW(run({"no-such-program"}), std::system_error);
}

TEST(Run, EndsWhatTakesTooLong) {
  const Stopwatch watch;
  const auto end = run({"sh", "-c", "echo early; exec sleep 60"}, {}, 200ms);
  EXPECT_EQ(end.code, -1);
  EXPECT_EQ(end.out, "early\n");
  EXPECT_LT(watch.elapsed(), 10s);
}

TEST_F(EtcdSecure, CertificatesAreWhatTheirNamesSay) {
  const TestCertificates made;
  const auto verify = [&](const std::string& ca, const TestCertificates::Pair& pair) {
    return run({"openssl", "verify", "-CAfile", ca, "-verify_ip", "127.0.0.1", pair.certificate});
  };
  EXPECT_EQ(verify(made.ca(), made.server()).code, 0);
  EXPECT_EQ(verify(made.ca(), made.client()).code, 0);
  EXPECT_TRUE(says(verify(made.other_ca(), made.server()), "unable to get local issuer"));
  EXPECT_TRUE(
      says(verify(made.ca(), made.server(ServerCertificate::kWrongHost)), "address mismatch"));
  EXPECT_TRUE(says(verify(made.ca(), made.server(ServerCertificate::kExpired)), "has expired"));
  EXPECT_NE(verify(made.ca(), made.server(ServerCertificate::kOtherCa)).code, 0);
  EXPECT_EQ(verify(made.other_ca(), made.server(ServerCertificate::kOtherCa)).code, 0);
  EXPECT_EQ(verify(made.other_ca(), made.other_client()).code, 0);
}

TEST_F(EtcdSecure, EtcdctlTalksToOneServerOrAll) {
  EtcdCluster etcd;
  EXPECT_EQ(etcd.etcdctl({"put", "a", "1"}).code, 0);
  const auto end = etcd.etcdctl(0, {"get", "a", "--print-value-only"});
  EXPECT_EQ(end.code, 0);
  EXPECT_EQ(end.out, "1\n");
  EXPECT_NE(etcd.etcdctl({"no-such-command"}).code, 0);
}

TEST_F(EtcdSecure, WithTlsOnlyThoseWhoSpeakItGetIn) {
  EtcdOptions options;
  options.tls = true;
  EtcdCluster etcd(options);
  etcd.put("a", "1");  // through the port without TLS
  EXPECT_EQ(etcd.etcdctl({"get", "a", "--print-value-only"}).out, "1\n");
  const std::string soon = "--command-timeout=1s";
  EXPECT_NE(etcdctl(etcd.host(0), {soon, "get", "a"}).code, 0);
  const std::string wrong_ca = "--cacert=" + etcd.certificates().other_ca();
  EXPECT_NE(etcdctl(etcd.host(0), {soon, wrong_ca, "get", "a"}).code, 0);
  // The server does not ask for a client certificate.
  EXPECT_EQ(etcdctl(etcd.host(0), {"--cacert=" + etcd.certificates().ca(), "get", "a"}).code, 0);
  etcd.restart(0);
  EXPECT_EQ(etcd.etcdctl({"get", "a", "--print-value-only"}).out, "1\n");
}

TEST_F(EtcdSecure, ClientsWithoutACertificateAreTurnedAwayIfOneIsWanted) {
  EtcdOptions options;
  options.tls = true;
  options.client_certs = true;
  const EtcdCluster etcd(options);
  const std::string ca = "--cacert=" + etcd.certificates().ca();
  EXPECT_EQ(etcd.etcdctl({"get", "a"}).code, 0);
  const std::string soon = "--command-timeout=1s";
  EXPECT_NE(etcdctl(etcd.host(0), {soon, ca, "get", "a"}).code, 0);
  const auto other = etcd.certificates().other_client();
  EXPECT_NE(etcdctl(etcd.host(0),
                    {soon, ca, "--cert=" + other.certificate, "--key=" + other.key, "get", "a"})
                .code,
            0);
}

TEST_F(EtcdSecure, AServerWithABadCertificateRunsAndIsNotBelieved) {
  const auto shared = std::make_shared<TestCertificates>();
  const std::pair<ServerCertificate, std::string> bad[] = {
      {ServerCertificate::kWrongHost, "address mismatch"},
      {ServerCertificate::kExpired, "certificate has expired"},
      {ServerCertificate::kOtherCa, "unable to get local issuer"}};
  for (const auto& [which, complaint] : bad) {
    EtcdOptions options;
    options.tls = true;
    options.certificates = shared;
    options.server_certificate = which;
    EtcdCluster etcd(options);
    EXPECT_TRUE(etcd.serving(0));
    EXPECT_NE(etcd.etcdctl({"--command-timeout=1s", "get", "a"}).code, 0);
    // etcdctl does not report the reason, but openssl does.
    const auto end = run({"openssl", "s_client", "-connect", etcd.host(0), "-CAfile", shared->ca(),
                          "-verify_ip", "127.0.0.1", "-verify_return_error"});
    EXPECT_NE(end.code, 0);
    EXPECT_TRUE(says(end, complaint)) << end.out << end.err;
  }
}

TEST_F(EtcdSecure, UsersMayDoWhatTheirRoleAllows) {
  EtcdCluster etcd;
  etcd.put("mine/a", "1");
  etcd.put("yours/a", "2");
  etcd.add_user("me", "secret", "mine/");
  etcd.enable_auth("master");
  etcd.add_user("reader", "secret", "mine/", true);

  // This object asks as root.
  EXPECT_EQ(etcd.keys().size(), 2U);
  EXPECT_TRUE(etcd.serving(0));
  EXPECT_NE(etcd.etcdctl({"get", "mine/a"}).code, 0);
  EXPECT_NE(etcd.etcdctl({"--user=me:wrong", "get", "mine/a"}).code, 0);
  EXPECT_EQ(etcd.etcdctl({"--user=me:secret", "put", "mine/a", "3"}).code, 0);
  EXPECT_TRUE(says(etcd.etcdctl({"--user=me:secret", "put", "yours/a", "3"}), "permission denied"));
  EXPECT_EQ(etcd.etcdctl({"--user=reader:secret", "get", "mine/a"}).code, 0);
  EXPECT_TRUE(
      says(etcd.etcdctl({"--user=reader:secret", "put", "mine/a", "4"}), "permission denied"));

  etcd.change_password("me", "other");
  EXPECT_NE(etcd.etcdctl({"--user=me:secret", "get", "mine/a"}).code, 0);
  EXPECT_EQ(etcd.etcdctl({"--user=me:other", "get", "mine/a"}).code, 0);

  etcd.restart(0);  // the server does not know the token any more
  EXPECT_EQ(etcd.key("mine/a").value().value, "3");
  etcd.disable_auth();
  EXPECT_EQ(etcd.key("mine/a").value().value, "3");
  EXPECT_EQ(etcd.etcdctl({"get", "mine/a"}).code, 0);
}

TEST_F(EtcdSecure, CompactionForgetsOldRevisions) {
  EtcdCluster etcd;
  const auto first = etcd.put("a", std::string(100'000, 'x'));
  for (int i = 0; i < 20; ++i) etcd.put("a", std::string(100'000, 'y'));
  EXPECT_EQ(etcd.etcdctl({"get", "a", "--rev=" + std::to_string(first)}).code, 0);
  EXPECT_EQ(etcd.compact(), etcd.revision());
  EXPECT_EQ(etcd.compact(), etcd.revision());  // a second call changes nothing
  EXPECT_TRUE(
      says(etcd.etcdctl({"get", "a", "--rev=" + std::to_string(first)}), "has been compacted"));
  EXPECT_EQ(etcd.key("a").value().value, std::string(100'000, 'y'));
  const auto before = etcd.status(0).value().size;
  etcd.defragment(0);
  EXPECT_LT(etcd.status(0).value().size, before / 2);
}

}  // namespace
}  // namespace baton::test
