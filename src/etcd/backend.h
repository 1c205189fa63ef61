// Creates the backend that uses an etcd cluster over gRPC.
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

// Reads the password and the TLS files; does no other I/O. Error(invalid_argument) for options that
// are invalid; Error(unsupported) in a fork of a process that has used etcd.
Result<std::unique_ptr<internal::Backend>> make_backend(const StoreUrl& url,
                                                        const BackendOptions& options);

// The same over a channel that the program has created. root: "" or "/app".
Result<std::unique_ptr<internal::Backend>> make_backend(std::shared_ptr<grpc::Channel> channel,
                                                        const std::string& root,
                                                        const BackendOptions& options);

}  // namespace baton::etcd
