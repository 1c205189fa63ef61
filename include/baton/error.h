// Errc and Error: what can go wrong, as error codes and as one exception type.
#pragma once

#include <baton/version.h>

#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>

namespace baton {

// The code of every failure of baton. 0 is success, as std::error_code requires it. The comment of
// each call lists the codes that it reports; a later version may add codes.
//
//   if (error.errc() == baton::Errc::timeout) return;  // baton's own code
//   if (error.code() == std::errc::timed_out) return;  // the standard's code for the same thing
//
// These codes equal a std::errc: timeout (timed_out), cancelled (operation_canceled),
// connection_failed (not_connected), would_deadlock (resource_deadlock_would_occur), invalid_name
// and invalid_argument (both invalid_argument), permission_denied, unsupported (not_supported).
enum class Errc {
  // The call did not finish within its timeout. After an acquire no entry stays in the queue;
  // after release() the release goes on in the background.
  timeout = 1,
  // AcquireOptions::stop was requested. No entry stays in the queue.
  cancelled,
  // The client is closed or closing, or the handle was moved from.
  closed,
  // The store could not be reached within the client's connect_timeout. Worth a retry.
  connection_failed,
  // The session ended. Every lock that was held in it is lost. Waiters are not told: they join the
  // queue again in the next session.
  session_expired,
  // The lock was held and is not held any more. Lock::lost_reason() has the cause.
  lock_lost,
  // The Lock was released, or the calling thread has no hold by lock().
  not_held,
  // Waiting could never end, or two handlers would share one hold. Reported by
  //  - an acquire without a timeout, if the calling thread holds the same lock by lock();
  //  - a blocking acquire without a timeout on the client's callback thread;
  //  - lock() and try_lock*() inside a handler or a resumed coroutine.
  would_deadlock,
  // Not a lock name: see <baton/name.h>. Reported before any I/O.
  invalid_name,
  // An option, a timeout or a URL is not acceptable, or the store records another token base than
  // the URL has.
  invalid_argument,
  // The store or the file system refuses the client's credentials or rights.
  permission_denied,
  // This build, this file system, this server version or this forked process cannot do it.
  unsupported,
  // The store answered something that it should never answer, or its data is damaged.
  store_error,
  // This process is a fork of the process that opened the client. Open a client in the fork.
  forked,
  // Cause of a loss only: the lock's entry was removed by force (Client::evict() or by hand).
  evicted,
  // Cause of a loss only: the cluster at this address is another one, or was set back in time
  // (restored from a backup). Reported on etcd.
  store_changed,
};

// The category of all Errc. Its name() is "baton"; message() is a short English phrase.
BATON_API const std::error_category& error_category() noexcept;

// Makes a std::error_code of an Errc. Found by std::error_code's constructor: Errc converts by
// itself, as in `lock.lost_reason() == baton::Errc::evicted`.
inline std::error_code make_error_code(Errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

// The exception of baton, and the error of Result<T>. what() says what was being done, on which
// lock, where, what happened and what is true now. Copying never throws. A const Error may be read
// by several threads.
//
//   try {
//     baton::Lock lock = mutex.acquire_for(std::chrono::seconds(30));
//   } catch (const baton::Error& error) {
//     if (error.errc() != baton::Errc::timeout) throw;
//   }
class BATON_API Error : public std::system_error {
 public:
  Error(Errc code, const std::string& message);
  ~Error() override;
  Error(const Error&) noexcept = default;
  Error& operator=(const Error&) noexcept = default;

  // The code as the enum; code() is the same as a std::error_code.
  Errc errc() const noexcept { return static_cast<Errc>(code().value()); }
  // The message alone, without the text of the code. Valid as long as this Error or a copy of it.
  const char* what() const noexcept override;

 private:
  std::runtime_error text_;  // counted reference to the text: copies cannot throw
};

}  // namespace baton

template <>
struct std::is_error_code_enum<baton::Errc> : std::true_type {};
