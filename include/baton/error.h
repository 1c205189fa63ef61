// What can go wrong, as error codes and as one exception type.
#pragma once

#include <baton/version.h>

#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>

namespace baton {

// Every failure of baton has one of these codes. Zero is success, as std::error_code wants it.
enum class Errc {
  timeout = 1,        // not had in time; no entry of ours stays in the queue
  cancelled,          // the caller's stop_token asked to stop; no entry stays
  closed,             // the client was closed, or is being closed
  connection_failed,  // the store cannot be reached
  session_expired,    // the store ended our session: everything held under it is gone
  lock_lost,          // the lock was held and is no longer
  not_held,           // there is no hold to speak of
  would_deadlock,     // this thread holds the lock by lock() and asks for a handle without timeout
  invalid_name,       // not a lock name; see <baton/name.h>
  invalid_argument,   // an option, duration or URL makes no sense
  permission_denied,  // the store refuses us
  unsupported,        // this build, or this file system, cannot do it
  store_error,        // the store answered something it never should
  forked,             // this process is a fork of the one that opened the client
  evicted,            // reason of a loss: somebody removed our entry by force
  store_changed,      // reason of a loss: the store is another one, or was set back in time
};

BATON_API const std::error_category& error_category() noexcept;

inline std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

// The exception of baton. what() says what was being done, on which lock, where, what happened
// and what is true now. Copying never throws.
class BATON_API Error : public std::system_error {
 public:
  Error(Errc code, const std::string& message);
  ~Error() override;
  Error(const Error&) noexcept = default;
  Error& operator=(const Error&) noexcept = default;

  // The code as the enum; code() is the same as std::error_code.
  Errc errc() const noexcept { return static_cast<Errc>(code().value()); }
  const char* what() const noexcept override;

 private:
  std::runtime_error text_;  // counted reference to the text: copies cannot throw
};

}  // namespace baton

template <>
struct std::is_error_code_enum<baton::Errc> : std::true_type {};
