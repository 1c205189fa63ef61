// Opens the file store: a directory that all processes of one machine share.
#pragma once

#include "file/namespace.h"

#include "common/seam/session.h"

#include <memory>
#include <string>

namespace baton::file {

// Opens the directory (creates its last component if it is missing) and checks it. Does I/O, but
// does not wait for other processes. Error(unsupported) for network file systems,
// Error(permission_denied) for directories that must not be trusted, Error(connection_failed) when
// the directory cannot be opened, Error(store_error) when its contents are damaged.
Result<std::unique_ptr<internal::Backend>> make_backend(const std::string& directory,
                                                        const BackendOptions& options);

}  // namespace baton::file
