// The ZooKeeper store: an ensemble, through the official C client.
#pragma once

#include "common/seam/session.h"
#include "common/seam/url.h"

#include <memory>

namespace baton::internal {

// No I/O but reading the password. Error(invalid_argument), Error(unsupported) for what this build
// or its C client cannot do.
Result<std::unique_ptr<Backend>> make_zk_backend(const StoreUrl& url,
                                                 const BackendOptions& options);

}  // namespace baton::internal
