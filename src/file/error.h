// Makes the errors of the file store from errno. Inside this folder they are thrown. The session
// catches them and returns them as results; the client's engine adds the operation and the lock.
#pragma once

#include "file/namespace.h"

#include <baton/error.h>

#include <string>

namespace baton::file {

// "<what>: <strerror>". EACCES, EPERM and EROFS become permission_denied, all others store_error. A
// full disk or an exhausted descriptor table does not recover by itself, so these errors must not
// have a code that is retried without end.
Error io_error(int errnum, const std::string& what);

// "<what>" as a store_error: the store contains data that baton never writes.
Error damaged(const std::string& what);

}  // namespace baton::file
