#include "file/error.h"

#include <cerrno>
#include <system_error>

namespace baton::file {

Error io_error(int errnum, const std::string& what) {
  const bool denied = errnum == EACCES || errnum == EPERM || errnum == EROFS;
  // generic_category: strerror() is not thread-safe.
  return Error(denied ? Errc::permission_denied : Errc::store_error,
               what + ": " + std::generic_category().message(errnum));
}

Error damaged(const std::string& what) { return Error(Errc::store_error, what); }

}  // namespace baton::file
