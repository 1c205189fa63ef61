// Loads and checks the TLS files before anything is sent, and finds out why a TLS handshake failed.
#pragma once

#include "etcd/namespace.h"

#include <baton/options.h>
#include <baton/result.h>

#include "common/seam/url.h"

#include <grpcpp/security/credentials.h>

#include <chrono>
#include <memory>
#include <string>

namespace baton::etcd {

struct TlsMaterial {
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  std::string ca;  // PEM, for find_tls_trouble()
  std::string cert;
  std::string key;
};

// Error(invalid_argument) names the invalid file, but never shows its contents. Without url.tls the
// credentials are plaintext credentials.
Result<TlsMaterial> load_tls(const StoreUrl& url, const TlsOptions& files);

// gRPC reports every TLS problem as "handshake failed". This function opens a separate connection
// to find the cause. The result is only for a message; no decision depends on it. Blocks for at
// most `limit` in each network operation, plus the time of name resolution. Returns "" if it found
// no problem.
std::string find_tls_trouble(const Endpoint& endpoint, const TlsMaterial& tls,
                             std::chrono::milliseconds limit);

}  // namespace baton::etcd
