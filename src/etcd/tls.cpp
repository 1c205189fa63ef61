#include "etcd/tls.h"

#include "common/base/signal_shield.h"
#include "common/base/unique_fd.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

namespace baton::etcd {

namespace {

using std::chrono::milliseconds;

Result<std::string> read_pem(const std::string& what, const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in || text.empty()) {
    return Error(Errc::invalid_argument, "connect: " + what + " \"" + file + "\" cannot be read");
  }
  if (text.find("-----BEGIN ") == std::string::npos) {
    return Error(Errc::invalid_argument,
                 "connect: " + what + " \"" + file + "\" is not a PEM file");
  }
  return text;
}

template <class T, void (*Free)(T*)>
struct Freed {
  void operator()(T* p) const { Free(p); }
};
using Bio = std::unique_ptr<BIO, Freed<BIO, BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509, X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY, EVP_PKEY_free>>;
using Context = std::unique_ptr<SSL_CTX, Freed<SSL_CTX, SSL_CTX_free>>;
using Connection = std::unique_ptr<SSL, Freed<SSL, SSL_free>>;

Bio bio_of(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}
Certificate certificate_of(const std::string& pem) {
  return Certificate(PEM_read_bio_X509(bio_of(pem).get(), nullptr, nullptr, nullptr));
}
Key key_of(const std::string& pem) {
  // Without this callback OpenSSL would prompt for a password on the terminal.
  return Key(PEM_read_bio_PrivateKey(
      bio_of(pem).get(), nullptr, [](char*, int, int, void*) { return 0; }, nullptr));
}

std::optional<Error> check_pair(const TlsMaterial& tls, const TlsOptions& files) {
  const auto bad = [](const std::string& text) {
    ERR_clear_error();
    return Error(Errc::invalid_argument, "connect: " + text);
  };
  const auto certificate = certificate_of(tls.cert);
  if (!certificate) return bad("tls.cert_file \"" + files.cert_file + "\" has no certificate");
  const auto key = key_of(tls.key);
  if (!key) {
    return bad("tls.key_file \"" + files.key_file +
               "\" has no private key, or an encrypted one; baton needs it without a password");
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    return bad("tls.key_file \"" + files.key_file + "\" is not the key of \"" + files.cert_file +
               "\"");
  }
  ERR_clear_error();
  return std::nullopt;
}

// Returns a connected socket, or an invalid descriptor.
UniqueFd connect_to(const Endpoint& endpoint, milliseconds limit) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found) !=
      0) {
    return UniqueFd();
  }
  const std::unique_ptr<addrinfo, Freed<addrinfo, freeaddrinfo>> all(found);
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    UniqueFd fd(
        socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol));
    if (fd.get() < 0) continue;
    if (connect(fd.get(), a->ai_addr, a->ai_addrlen) != 0 && errno != EINPROGRESS) continue;
    pollfd p{fd.get(), POLLOUT, 0};
    int failed = 0;
    socklen_t size = sizeof failed;
    if (poll(&p, 1, static_cast<int>(limit.count())) == 1 &&
        getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failed, &size) == 0 && failed == 0) {
      return fd;
    }
  }
  return UniqueFd();
}

std::string describe(SSL* ssl, const Endpoint& endpoint) {
  const long verified = SSL_get_verify_result(ssl);
  switch (verified) {
    case X509_V_OK:
      break;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return "the server's certificate is not for the host name \"" + endpoint.host + "\"";
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return "the server's certificate has expired";
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return "the server's certificate is not valid yet";
    default:
      return std::string("the server's certificate is not signed by an authority we trust (") +
             X509_verify_cert_error_string(verified) + ")";
  }
  const unsigned long error = ERR_peek_error();
  if (ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) == SSL_R_WRONG_VERSION_NUMBER) {
    return "the server does not speak TLS on this port; use etcd:// for a plaintext port";
  }
  // On a plaintext port etcd closes the connection without an error.
  if (error == 0 || (ERR_GET_LIB(error) == ERR_LIB_SSL &&
                     ERR_GET_REASON(error) == SSL_R_UNEXPECTED_EOF_WHILE_READING)) {
    return "the server closed the connection in the TLS handshake: most likely it does not speak "
           "TLS on this port; use etcd:// for a plaintext port";
  }
  const char* reason = ERR_reason_error_string(error);
  return std::string("the TLS handshake failed") + (reason == nullptr ? "" : ": ") +
         (reason == nullptr ? "" : reason);
}

}  // namespace

Result<TlsMaterial> load_tls(const StoreUrl& url, const TlsOptions& files) {
  TlsMaterial tls;
  const bool any = !files.ca_file.empty() || !files.cert_file.empty() || !files.key_file.empty();
  if (!url.tls) {
    if (any) {
      return Error(Errc::invalid_argument,
                   "connect: TLS files are given, but etcd:// does not use TLS; write etcds://");
    }
    const SignalShield shield;  // the first gRPC object starts gRPC's threads
    tls.credentials = grpc::InsecureChannelCredentials();
    return tls;
  }
  if (files.cert_file.empty() != files.key_file.empty()) {
    return Error(Errc::invalid_argument,
                 "connect: tls.cert_file and tls.key_file go together; one of them is missing");
  }
  const std::pair<const std::string*, std::string*> all[] = {
      {&files.ca_file, &tls.ca}, {&files.cert_file, &tls.cert}, {&files.key_file, &tls.key}};
  const char* const names[] = {"tls.ca_file", "tls.cert_file", "tls.key_file"};
  for (std::size_t i = 0; i < 3; ++i) {
    if (all[i].first->empty()) continue;
    auto pem = read_pem(names[i], *all[i].first);
    if (!pem) return pem.error();
    *all[i].second = std::move(*pem);
  }
  if (!tls.ca.empty() && !certificate_of(tls.ca)) {
    ERR_clear_error();
    return Error(Errc::invalid_argument,
                 "connect: tls.ca_file \"" + files.ca_file + "\" has no certificate");
  }
  if (!tls.cert.empty()) {
    if (auto error = check_pair(tls, files)) return *std::move(error);
  }
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = tls.ca;
  options.pem_cert_chain = tls.cert;
  options.pem_private_key = tls.key;
  const SignalShield shield;
  tls.credentials = grpc::SslCredentials(options);
  return tls;
}

std::string find_tls_trouble(const Endpoint& endpoint, const TlsMaterial& tls, milliseconds limit) {
  const UniqueFd fd = connect_to(endpoint, limit);
  if (fd.get() < 0) return "";
  const int flags = fcntl(fd.get(), F_GETFL);
  fcntl(fd.get(), F_SETFL, flags & ~O_NONBLOCK);
  timeval patience{};
  patience.tv_sec = limit.count() / 1000;
  patience.tv_usec = limit.count() % 1000 * 1000;
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);

  ERR_clear_error();
  const Context context(SSL_CTX_new(TLS_client_method()));
  if (!context) return "";
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  if (tls.ca.empty()) {
    SSL_CTX_set_default_verify_paths(context.get());
  } else {
    const Bio bio = bio_of(tls.ca);
    while (const auto ca = Certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr))) {
      X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), ca.get());
    }
    ERR_clear_error();
  }
  if (!tls.cert.empty()) {
    SSL_CTX_use_certificate(context.get(), certificate_of(tls.cert).get());
    SSL_CTX_use_PrivateKey(context.get(), key_of(tls.key).get());
  }
  const Connection ssl(SSL_new(context.get()));
  if (!ssl) return "";
  X509_VERIFY_PARAM* wanted = SSL_get0_param(ssl.get());
  if (X509_VERIFY_PARAM_set1_ip_asc(wanted, endpoint.host.c_str()) != 1) {
    X509_VERIFY_PARAM_set1_host(wanted, endpoint.host.c_str(), 0);
    SSL_set_tlsext_host_name(ssl.get(), endpoint.host.c_str());
  }
  SSL_set_fd(ssl.get(), fd.get());
  ERR_clear_error();
  std::string trouble;
  if (SSL_connect(ssl.get()) != 1) {
    trouble = describe(ssl.get(), endpoint);
  } else {
    // With TLS 1.3, SSL_connect() succeeds before the server checks our certificate. A refusal
    // arrives only with the next read.
    char byte = 0;
    if (SSL_peek(ssl.get(), &byte, 1) <= 0 && ERR_peek_error() != 0) {
      const char* reason = ERR_reason_error_string(ERR_peek_error());
      trouble = std::string("the server refused our certificate, or wants one") +
                (reason == nullptr ? "" : std::string(" (") + reason + ")");
    }
  }
  ERR_clear_error();
  return trouble;
}

}  // namespace baton::etcd
