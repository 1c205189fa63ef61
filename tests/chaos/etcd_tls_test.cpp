// TLS to etcd: which servers are trusted, what errors report, and what is refused without a
// connection.
#include "chaos/etcd_security.h"
#include "support/eventually.h"
#include "support/proxy.h"

#include <fstream>
#include <memory>
#include <utility>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;
using test::kLong;
using test::ServerCertificate;

class EtcdTls : public EtcdSecurity {
 protected:
  void SetUp() override {
    EtcdSecurity::SetUp();
    if (!test::openssl_installed()) GTEST_SKIP() << "no openssl on this machine";
    certificates_ = std::make_shared<test::TestCertificates>();
    for (const auto& pair : {certificates_->client(), certificates_->other_client()}) {
      keep_secret(pair.key);
    }
  }
  const test::TestCertificates& certificates() const { return *certificates_; }
  test::EtcdOptions server(ServerCertificate which = ServerCertificate::kGood,
                           bool client_certs = false) const {
    test::EtcdOptions options;
    options.tls = true;
    options.client_certs = client_certs;
    options.server_certificate = which;
    options.certificates = certificates_;
    return options;
  }
  // A client retries until connect_timeout if it does not trust the server.
  ClientOptions trusting(const std::string& ca) const {
    ClientOptions options = nobody();
    options.connect_timeout = 3s;
    options.tls.ca_file = ca;
    return options;
  }
  ClientOptions with(const test::TestCertificates::Pair& pair) const {
    ClientOptions options = trusting(certificates().ca());
    options.tls.cert_file = pair.certificate;
    options.tls.key_file = pair.key;
    return options;
  }
  static Client connect(const test::EtcdCluster& etcd, const ClientOptions& options,
                        const std::string& scheme = "etcds") {
    return Client::connect(scheme + "://" + etcd.hosts() + "/app", options);
  }
  static void expect_works(Client& client) {
    auto lock = client.mutex("job").acquire({.timeout = kLong});
    EXPECT_FALSE(client.mutex("job").try_acquire().has_value());
    lock.verify(kLong);
    lock.release(kLong);
  }
  // The options are refused before any connection is made. Returns the message.
  std::string refused_before(const ClientOptions& options,
                             const std::string& scheme = "etcds") const {
    const test::Proxy door(1);
    const auto text = refused(Errc::invalid_argument, [&] {
      (void)Client::connect(scheme + "://" + door.host() + "/app", options);
    });
    EXPECT_EQ(door.accepted(), 0U);
    return text;
  }

 private:
  std::shared_ptr<const test::TestCertificates> certificates_;
};

TEST_F(EtcdTls, ServesThoseWhoTrustItsAuthority) {
  const test::EtcdCluster etcd(server());
  auto client = connect(etcd, trusting(certificates().ca()));
  expect_works(client);
}

TEST_F(EtcdTls, ServesThoseWhoShowACertificateIfOneIsWanted) {
  const test::EtcdCluster etcd(server(ServerCertificate::kGood, true));
  auto client = connect(etcd, with(certificates().client()));
  expect_works(client);
  for (const auto& options : {trusting(certificates().ca()), with(certificates().other_client())}) {
    const auto text = refused(Errc::connection_failed, [&] { (void)connect(etcd, options); });
    expect_says(text, "the server refused our certificate, or wants one");
  }
}

TEST_F(EtcdTls, SurvivesARestartOfItsServer) {
  test::EtcdCluster etcd(server());
  auto client = connect(etcd, trusting(certificates().ca()));
  auto lock = client.mutex("job").acquire({.timeout = kLong});
  etcd.restart(0);
  lock.verify(kLong);
  lock.release(kLong);
}

TEST_F(EtcdTls, DoesNotBelieveAServerWhoseCertificateIsWrongAndSaysWhy) {
  const std::pair<ServerCertificate, std::string> bad[] = {
      {ServerCertificate::kWrongHost, "is not for the host name \"127.0.0.1\""},
      {ServerCertificate::kExpired, "has expired"},
      {ServerCertificate::kOtherCa, "is not signed by an authority we trust"}};
  for (const auto& [which, complaint] : bad) {
    const test::EtcdCluster etcd(server(which));
    const auto text = refused(Errc::connection_failed,
                              [&] { (void)connect(etcd, trusting(certificates().ca())); });
    expect_says(text, complaint);
  }
}

TEST_F(EtcdTls, DoesNotBelieveAServerOfAnAuthorityThatIsNotTrusted) {
  const test::EtcdCluster etcd(server());
  // Neither the given authority nor those of this machine have signed its certificate.
  for (const auto& options : {trusting(certificates().other_ca()), trusting("")}) {
    const auto text = refused(Errc::connection_failed, [&] { (void)connect(etcd, options); });
    expect_says(text, "is not signed by an authority we trust");
  }
}

TEST_F(EtcdTls, SaysThatAPortDoesNotSpeakTls) {
  const test::EtcdCluster etcd;
  const auto text =
      refused(Errc::connection_failed, [&] { (void)connect(etcd, trusting(certificates().ca())); });
  expect_says(text, "does not speak TLS on this port; use etcd://");
}

TEST_F(EtcdTls, DoesNotReachAPortThatSpeaksTlsWithoutIt) {
  const test::EtcdCluster etcd(server());
  const auto text =
      refused(Errc::connection_failed, [&] { (void)connect(etcd, trusting(""), "etcd"); });
  expect_says(text, "Socket closed");
}

TEST_F(EtcdTls, FilesThatMakeNoSenseAreRefusedBeforeAnything) {
  const auto good = with(certificates().client());
  auto options = good;
  options.tls.key_file = certificates().other_client().key;
  expect_says(refused_before(options), "is not the key of");
  options = good;
  options.tls.key_file.clear();
  expect_says(refused_before(options), "go together");
  options = good;
  options.tls.cert_file.clear();
  expect_says(refused_before(options), "go together");
  options = good;
  options.tls.ca_file += ".not-there";
  expect_says(refused_before(options), ".not-there\" cannot be read");
  options = good;
  options.tls.key_file += ".not-there";
  expect_says(refused_before(options), ".not-there\" cannot be read");
  options = good;  // a key instead of a certificate
  options.tls.ca_file = certificates().client().key;
  expect_says(refused_before(options), "has no certificate");
  options = good;
  options.tls.key_file = certificates().client().certificate;
  expect_says(refused_before(options), "has no private key");
  options = good;
  options.tls.ca_file = directory_ / "text";
  std::ofstream(options.tls.ca_file) << "hello\n";
  expect_says(refused_before(options), "is not a PEM file");
  expect_says(refused_before(good, "etcd"), "write etcds://");
}

TEST_F(EtcdTls, PasswordsThatCannotBeReadAreRefusedBeforeAnything) {
  ClientOptions none = as(kApp);
  none.credentials.password_file.clear();
  refused_before(none);
  ClientOptions missing = as(kApp);
  missing.credentials.password_file += ".not-there";
  refused_before(missing);
  ClientOptions both = as(kApp);
  both.credentials.password_env = "BATON_TEST_ETCD_PASSWORD";
  refused_before(both);
}

// Users and TLS together. Whatever fails after the connection, no message shows a secret.
TEST_F(EtcdTls, SecretsStayWhereTheyAreWhateverFails) {
  test::EtcdCluster etcd(server(ServerCertificate::kGood, true));
  etcd.add_user(kApp.name, kApp.password, "/app/");
  etcd.enable_auth(kRoot.password);
  ClientOptions options = as(kApp);
  options.tls = with(certificates().client()).tls;
  options.connect_timeout = 3s;
  test::Proxy door(etcd.client_port(0));
  auto client = Client::connect("etcds://" + door.host() + "/app", options);
  expect_works(client);
  EXPECT_EQ(log_.count(LogLevel::warning, "in the clear"), 0U);
  auto lock = client.mutex("job").acquire({.timeout = kLong});
  door.cut();
  refused(Errc::timeout, [&] { (void)client.inspect("job"); });
  refused(Errc::timeout, [&] { (void)client.mutex("job").acquire({.timeout = 200ms}); });
  refused(Errc::connection_failed,
          [&] { (void)Client::connect("etcds://" + door.host() + "/app", options); });
  door.heal();
  lock.verify(kLong);
  ClientOptions pretender = as(kPretender);
  pretender.tls = options.tls;
  refused(Errc::permission_denied,
          [&] { (void)Client::connect("etcds://" + door.host() + "/app", pretender); });
  EXPECT_FALSE(log_.lines().empty()) << "nothing was said at all";
}

}  // namespace
}  // namespace baton::chaos
