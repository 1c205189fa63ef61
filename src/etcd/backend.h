// The etcd store: a cluster, over gRPC.
#pragma once

#include "etcd/namespace.h"

#include "common/seam/session.h"
#include "common/seam/url.h"

#include <memory>
#include <string>

namespace grpc {
class Channel;
}

namespace baton::etcd {

// No I/O but reading the password and the TLS files. Error(invalid_argument) for what makes no
// sense.
Result<std::unique_ptr<internal::Backend>> make_backend(const StoreUrl& url,
                                                        const BackendOptions& options);

// The same over a channel that somebody else made. root: "" or "/app".
Result<std::unique_ptr<internal::Backend>> make_backend(std::shared_ptr<grpc::Channel> channel,
                                                        const std::string& root,
                                                        const BackendOptions& options);

}  // namespace baton::etcd
