// Errors of the file store, made of errno. Inside this folder they are thrown; the session catches
// them and adds what it was doing, to which lock.
#pragma once

#include "file/namespace.h"

#include <baton/error.h>

#include <string>

namespace baton::file {

// "<what>: <strerror>". EACCES, EPERM and EROFS are permission_denied, all others store_error: a
// full disk or an empty descriptor table does not pass by itself, so nobody must retry for ever.
Error io_error(int errnum, const std::string& what);

// "<what>" as a store_error: the store holds something it never should.
Error damaged(const std::string& what);

}  // namespace baton::file
