// Lock: the proof of holding a lock, and the signal that it is gone.
#pragma once

#include <baton/error.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <string>
#include <system_error>

namespace baton {

namespace internal {
class Hold;
class LockMaker;
}  // namespace internal

// held -> suspect -> held | lost, and -> released. Suspect: contact with the store is overdue, but
// the lock is still ours until the deadline.
enum class LockState { held, suspect, lost, released };

// One hold of one lock. Move-only; may move to another thread. Destroying it releases the lock
// without waiting for the store. A moved-from Lock is released and has token 0.
//
// Holding is a belief with a deadline. valid() is exact by the clock: it turns false before the
// store can give the lock to somebody else. What happens between asking valid() and acting on it
// is protected by the token alone: hand token() to whatever the lock protects, and let that refuse
// tokens smaller than the greatest it has seen.
//
// All const calls are thread-safe, do no I/O and never block. release(), verify(), moves and the
// destructor are for one thread at a time. A Lock may outlive its Client; it is lost then.
class BATON_API [[nodiscard]] Lock {
 public:
  Lock() noexcept;  // released, token 0
  Lock(Lock&&) noexcept;
  Lock& operator=(Lock&&) noexcept;  // releases what it held before
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  ~Lock();

  // The fencing token: greater than that of every earlier grant of this name. Stays readable after
  // the lock is lost or released.
  std::uint64_t token() const noexcept;

  // Whether the lock is ours now. Once false, it stays false.
  bool valid() const noexcept;
  explicit operator bool() const noexcept { return valid(); }

  // How long valid() stays true without further word from the store, rounded down; 0 when not
  // valid; milliseconds::max() on stores without a lease.
  std::chrono::milliseconds valid_for() const noexcept;

  const std::string& name() const noexcept;

  // Why the lock was lost (evicted, session_expired, lock_lost, closed, forked); no error unless
  // state() is lost.
  std::error_code lost_reason() const noexcept;
  LockState state() const noexcept;

  // Stop is requested when the lock is lost, on a thread of the client that does nothing else;
  // never for a release. In a fork of the process valid() is false, but no thread is left to
  // request the stop.
  std::stop_token lost_token() const noexcept;

  // Asks the store whether the lock is still ours. Returns if it is. Throws Error(lock_lost) if it
  // is not, Error(timeout) without an answer in time, Error(not_held) after a release,
  // Error(invalid_argument) for a negative timeout.
  void verify(std::chrono::milliseconds timeout = std::chrono::seconds(5));

  // Releases and waits until the store has confirmed it. Throws Error(lock_lost) if the lock was
  // lost before, Error(timeout) if the store did not confirm in time (the release goes on in the
  // background), Error(not_held) after a release, Error(invalid_argument) for a negative timeout
  // (the lock is kept then). A Lock that was not lost is released after this, also when it throws.
  void release(std::chrono::milliseconds timeout = std::chrono::seconds(5));

 private:
  friend class internal::LockMaker;
  explicit Lock(std::shared_ptr<internal::Hold> hold) noexcept;
  void drop() noexcept;

  std::shared_ptr<internal::Hold> hold_;
};

}  // namespace baton
