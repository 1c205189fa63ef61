// Lock: the proof of holding a lock, and the signal that it is gone.
#pragma once

#include <baton/detail/duration.h>
#include <baton/detail/forward.h>
#include <baton/error.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <system_error>

namespace baton {

// held -> suspect -> held | lost, and -> released. Suspect: contact with the store is overdue, but
// the lock is still ours until the deadline.
enum class LockState { held, suspect, lost, released };

// One hold of one lock. Move-only; may move to another thread. Destroying it releases the lock
// without waiting for the store. A moved-from Lock is released and has token 0.
//
// Holding is a belief with a deadline. valid() is exact by the clock: it turns false before the
// store can give the lock to somebody else. What happens between asking valid() and acting on it
// is protected by the token alone, see token().
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

  // The fencing token: greater than that of every earlier grant of this name, greater than 0, and
  // small enough for a signed 64-bit column. Stays readable after the lock is lost or released.
  //
  // Record it in what the lock protects before you read from there, and write with exactly it:
  //   UPDATE t SET fence = :token WHERE id = :id AND fence <= :token;
  //   SELECT value FROM t WHERE id = :id;
  //   UPDATE t SET value = :value WHERE id = :id AND fence = :token;
  // Zero rows changed: refused, a newer holder has recorded its token. Stop. A token that is
  // checked at the write alone loses updates: a paused holder can write after its successor has
  // read.
  std::uint64_t token() const noexcept;

  // Whether the lock is ours now. Once false, it stays false.
  bool valid() const noexcept;
  explicit operator bool() const& noexcept { return valid(); }
  // A temporary Lock releases at the end of the expression that asks: in `if (m.acquire_for(1s))
  // {...}` the body would run without the lock. Give it a name: `if (Lock lock = m.acquire_for(1s))
  // {...}`.
  explicit operator bool() const&& = delete;

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
  // request the stop. A stop callback that blocks delays no other lock's, as long as at most 256
  // of a client block at once; beyond that they wait, and the log says so. valid() never waits.
  std::stop_token lost_token() const noexcept;

  // Asks the store whether the lock is still ours. Returns if it is. Throws Error(lock_lost) if it
  // is not, Error(timeout) without an answer in time, Error(not_held) after a release,
  // Error(invalid_argument) for a negative timeout.
  void verify(std::chrono::milliseconds timeout = std::chrono::seconds(5));
  // Any other duration, rounded up to milliseconds; too long for milliseconds means no limit.
  template <class R, class P>
  void verify(const std::chrono::duration<R, P>& timeout) {
    verify(internal::timeout_to_ms(timeout));
  }

  // Releases and waits until the store has confirmed it. Throws Error(lock_lost) if the lock was
  // lost before, Error(timeout) if the store did not confirm in time (the release goes on in the
  // background), Error(not_held) after a release, Error(invalid_argument) for a negative timeout
  // (the lock is kept then). A Lock that was not lost is released after this, also when it throws.
  void release(std::chrono::milliseconds timeout = std::chrono::seconds(5));
  template <class R, class P>
  void release(const std::chrono::duration<R, P>& timeout) {
    release(internal::timeout_to_ms(timeout));
  }

 private:
  friend class internal::LockMaker;
  explicit Lock(std::shared_ptr<internal::Hold> hold) noexcept;
  void drop() noexcept;

  std::shared_ptr<internal::Hold> hold_;
};

// What try_acquire() returns: a std::optional<Lock>, empty when the lock was not free in time. The
// one difference is that a temporary TryLock cannot be asked by bool, because its Lock is released
// before the answer is used. Give it a name:
//
//   if (baton::TryLock lock = mutex.try_acquire()) { /* the lock is held here */ }
//   if (mutex.try_acquire()) {...}                    // does not compile
//
// has_value() answers on a temporary too, for a program that wants to know and not to hold.
class [[nodiscard]] TryLock : public std::optional<Lock> {
 public:
  using std::optional<Lock>::optional;
  explicit operator bool() const& noexcept { return has_value(); }
  explicit operator bool() const&& = delete;
};

}  // namespace baton
