// TLS to etcd: the files, checked before anything is sent, and a word on why a handshake failed.
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

// Error(invalid_argument) names the file that is wrong, never what is in it. Plain where url.tls is
// not set.
Result<TlsMaterial> load_tls(const StoreUrl& url, const TlsOptions& files);

// gRPC says "handshake failed" whatever it was. Connects once more, by itself, only to find out;
// what it finds is for a message and decides nothing. Blocks, at most this long. "": nothing was
// wrong.
std::string find_tls_trouble(const Endpoint& endpoint, const TlsMaterial& tls,
                             std::chrono::milliseconds limit);

}  // namespace baton::etcd
