// Creates the backend that uses a ZooKeeper ensemble through the official C client.
#pragma once

#include "zk/namespace.h"

#include "common/seam/session.h"
#include "common/seam/url.h"

#include <memory>

namespace baton::zk {

// Reads the password; does no other I/O. Error(invalid_argument) for options that are invalid;
// Error(unsupported) for options that the installed C client does not support.
Result<std::unique_ptr<internal::Backend>> make_backend(const StoreUrl& url,
                                                        const BackendOptions& options);

}  // namespace baton::zk
