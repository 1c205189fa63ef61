// The file store: a directory shared by all processes of one machine.
#pragma once

#include "file/namespace.h"

#include "common/seam/session.h"

#include <memory>
#include <string>

namespace baton::file {

// Opens the directory (its last component is created if missing) and checks it. Does I/O, no
// waiting. Error(unsupported) for network file systems, Error(permission_denied) for directories we
// must not trust, Error(connection_failed) when it cannot be opened, Error(store_error) when its
// contents are damaged.
Result<std::unique_ptr<internal::Backend>> make_backend(const std::string& directory,
                                                        const BackendOptions& options);

}  // namespace baton::file
