// Certificates for servers and clients of a test, good ones and others.
#pragma once

#include "support/temp_dir.h"

#include <string>

namespace baton::test {

enum class ServerCertificate {
  kGood,       // for 127.0.0.1 and localhost
  kWrongHost,  // for elsewhere.example and 192.0.2.1
  kExpired,    // years ago
  kOtherCa,    // by one that nobody trusts
};

// Made with the program openssl when constructed, in a directory of their own; throws if that
// fails. All in PEM. A server's may also be used as a client's: etcd's JSON gateway does so.
class TestCertificates {
 public:
  // Paths of files.
  struct Pair {
    std::string certificate;
    std::string key;
  };

  TestCertificates();

  std::string ca() const { return dir_ / "ca.pem"; }           // what both sides trust
  std::string other_ca() const { return dir_ / "other.pem"; }  // somebody else's
  Pair server(ServerCertificate which = ServerCertificate::kGood) const;
  Pair client() const { return pair("client"); }              // common name "baton"
  Pair other_client() const { return pair("other-client"); }  // of the other authority

 private:
  void make_ca(const std::string& name) const;
  void make(const std::string& name, const std::string& ca, const std::string& common_name,
            const std::string& hosts, const std::string& end) const;
  Pair pair(const std::string& name) const;

  TempDir dir_;
};

bool openssl_installed();

}  // namespace baton::test
