// The ZooKeeper store: an ensemble, through the official C client.
#pragma once

#include "zk/namespace.h"

#include "common/seam/session.h"
#include "common/seam/url.h"

#include <memory>

namespace baton::zk {

// No I/O but reading the password. Error(invalid_argument), Error(unsupported) for what this build
// or its C client cannot do.
Result<std::unique_ptr<internal::Backend>> make_backend(const StoreUrl& url,
                                                        const BackendOptions& options);

}  // namespace baton::zk
