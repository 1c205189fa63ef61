#include "support/certificates.h"

#include "support/run.h"

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <vector>

namespace baton::test {
namespace {

constexpr const char* kFar = "21000101000000Z";
constexpr const char* kPast = "20210101000000Z";

// Uses `openssl ca`, because only this command can make an expired certificate in all versions.
constexpr const char* kConfiguration = R"([req]
distinguished_name = name
[name]
[ca]
default_ca = ours
[ours]
database = index
new_certs_dir = .
rand_serial = yes
unique_subject = no
default_md = sha256
policy = any
copy_extensions = copy
[any]
commonName = supplied
)";

void openssl(const std::string& dir, const std::string& what) {
  // Runs in the directory, so that the configuration needs no paths.
  const auto end = run({"sh", "-c", "cd \"$0\" && openssl " + what, dir});
  if (end.code != 0) throw std::runtime_error("openssl " + what + ":\n" + end.err);
}

}  // namespace

TestCertificates::TestCertificates() {
  std::ofstream(dir_ / "conf") << kConfiguration;
  std::ofstream(dir_ / "index") << "";
  make_ca("ca");
  make_ca("other");
  const std::string here = "IP:127.0.0.1,DNS:localhost";
  make("good", "ca", "server", here, kFar);
  make("wrong-host", "ca", "server", "IP:192.0.2.1,DNS:elsewhere.example", kFar);
  make("expired", "ca", "server", here, kPast);
  make("other-server", "other", "server", here, kFar);
  make("client", "ca", "baton", here, kFar);
  make("other-client", "other", "baton", here, kFar);
}

void TestCertificates::make_ca(const std::string& name) const {
  openssl(
      dir_.path(),
      "req -config conf -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout " +
          name + ".key -out " + name + ".pem -days 36500 -subj /CN=" + name +
          " -addext basicConstraints=critical,CA:TRUE"
          " -addext keyUsage=critical,keyCertSign -addext subjectKeyIdentifier=hash");
}

void TestCertificates::make(const std::string& name, const std::string& ca,
                            const std::string& common_name, const std::string& hosts,
                            const std::string& end) const {
  openssl(dir_.path(),
          "req -config conf -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout " +
              name + ".key -out " + name + ".csr -subj /CN=" + common_name +
              " -addext basicConstraints=critical,CA:FALSE -addext subjectAltName=" + hosts +
              " -addext extendedKeyUsage=serverAuth,clientAuth");
  openssl(dir_.path(), "ca -config conf -batch -notext -cert " + ca + ".pem -keyfile " + ca +
                           ".key -startdate 20200101000000Z -enddate " + end + " -in " + name +
                           ".csr -out " + name + ".pem");
}

TestCertificates::Pair TestCertificates::pair(const std::string& name) const {
  return {dir_ / (name + ".pem"), dir_ / (name + ".key")};
}

TestCertificates::Pair TestCertificates::server(ServerCertificate which) const {
  switch (which) {
    case ServerCertificate::kGood:
      return pair("good");
    case ServerCertificate::kWrongHost:
      return pair("wrong-host");
    case ServerCertificate::kExpired:
      return pair("expired");
    case ServerCertificate::kOtherCa:
      return pair("other-server");
  }
  throw std::invalid_argument("no such certificate");
}

bool openssl_installed() { return in_path("openssl"); }

}  // namespace baton::test
