// Makes certificates for servers and clients of a test, valid and invalid ones.
#pragma once

#include "support/temp_dir.h"

#include <string>

namespace baton::test {

enum class ServerCertificate {
  kGood,       // for 127.0.0.1 and localhost
  kWrongHost,  // for elsewhere.example and 192.0.2.1 only
  kExpired,    // expired years ago
  kOtherCa,    // from an authority that nothing trusts
};

// The constructor makes the files with the program openssl, in a separate directory, and throws if
// that fails. All files are PEM. A server certificate also works as a client certificate, because
// etcd's JSON gateway uses it so.
class TestCertificates {
 public:
  // Paths of files.
  struct Pair {
    std::string certificate;
    std::string key;
  };

  TestCertificates();

  // The authority that both sides trust.
  std::string ca() const { return dir_ / "ca.pem"; }
  std::string other_ca() const { return dir_ / "other.pem"; }  // another authority
  Pair server(ServerCertificate which = ServerCertificate::kGood) const;
  Pair client() const { return pair("client"); }              // common name "baton"
  Pair other_client() const { return pair("other-client"); }  // from the other authority

 private:
  void make_ca(const std::string& name) const;
  void make(const std::string& name, const std::string& ca, const std::string& common_name,
            const std::string& hosts, const std::string& end) const;
  Pair pair(const std::string& name) const;

  TempDir dir_;
};

bool openssl_installed();

}  // namespace baton::test
