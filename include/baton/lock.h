// Lock: one hold of one lock. TryLock: a Lock or nothing.
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

// The states of a Lock. From lost and released there is no way back.
//
// | state()  | valid() | lost_token()    | lost_reason() | how the Lock gets there               |
// |----------|---------|-----------------|---------------|---------------------------------------|
// | held     | true    | not requested   | no error      | granted; or suspect, and the store    |
// |          |         |                 |               | has answered again in time            |
// | suspect  | true    | not requested   | no error      | an answer of the store is overdue     |
// | lost     | false   | requested, at   | the cause     | the deadline has passed, or one of    |
// |          |         | once or soon    |               | the causes at Lock::lost_reason()     |
// | released | false   | never requested | no error      | release(), destructor, moved from     |
//
// Suspect is a warning: nothing is lost yet, but the time that valid_for() shows runs out. It
// exists on stores with a lease only (zk://, etcd://, testing::MemoryStore), never on file:// and
// memory:.
enum class LockState { held, suspect, lost, released };

// One hold of one lock, made by DistributedMutex::acquire() and its relatives. Move-only. The Lock
// owns the hold: destroying it releases the lock, without waiting for the store.
//
//   baton::Lock lock = mutex.acquire_for(std::chrono::seconds(30));
//   std::stop_callback stop_work(lock.lost_token(), [&] { worker.cancel(); });
//   worker.run(lock.token());
//
// A hold has a deadline on stores with a lease. valid() turns false at the deadline, before the
// store can grant the lock to another client (clock rates must not differ by more than 1 %, and no
// operator may remove the entry of a live holder). A process can be paused between a call of
// valid() and the write that follows it: only the token protects that write. See token().
//
// Threads: all const calls are thread-safe, do no I/O and never block. release(), verify(), moves
// and the destructor are for one thread at a time; any thread may be that one.
//
// A Lock may outlive its Client: it is lost then, with reason closed. In a fork of the process the
// Lock is lost with reason forked, and its destructor does nothing; the parent keeps the lock.
class BATON_API [[nodiscard]] Lock {
 public:
  Lock() noexcept;                   // holds nothing: released, token 0, empty name
  Lock(Lock&&) noexcept;             // the source then holds nothing, like Lock()
  Lock& operator=(Lock&&) noexcept;  // first releases what this Lock held, as the destructor does
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  // Releases the lock, if it is held, and returns at once. The entry is withdrawn in the
  // background, also after an outage. To know that the store has removed it, call release().
  ~Lock();

  // Returns the fencing token: greater than the token of every earlier grant of this name, greater
  // than 0, and small enough for a signed 64-bit column. Stays readable after a loss and after
  // release(). 0: this Lock was moved from or default-constructed.
  //
  // Record the token in the resource before you read from it, and write with exactly this token:
  //   UPDATE t SET fence = :token WHERE id = :id AND fence <= :token;
  //   SELECT value FROM t WHERE id = :id;
  //   UPDATE t SET value = :value WHERE id = :id AND fence = :token;
  // Zero rows changed: a newer holder has recorded its token. Stop. To check the token at the write
  // alone is not enough: a paused holder could write after its successor has read.
  std::uint64_t token() const noexcept;

  // Returns whether the lock is held now, by state and clock. No I/O. Once false, it stays false.
  bool valid() const noexcept;
  explicit operator bool() const& noexcept { return valid(); }
  // Does not compile on a temporary Lock, which is released at the end of the expression: in
  // `if (mutex.acquire_for(1s)) {...}` the body would run without the lock. Give it a name:
  //   if (baton::Lock lock = mutex.acquire_for(std::chrono::seconds(1))) { /* held here */ }
  explicit operator bool() const&& = delete;

  // Returns how long valid() stays true if the store does not answer again, rounded down. 0 if the
  // Lock is not valid. milliseconds::max() on stores without a lease (file:// and memory:).
  // An eviction, the end of the session or close() can end the hold earlier.
  std::chrono::milliseconds valid_for() const noexcept;

  // Returns the name of the lock; empty if this Lock was moved from or default-constructed. The
  // reference is good until this Lock is moved, assigned or destroyed.
  const std::string& name() const noexcept;

  // Returns why the lock was lost; no error unless state() is lost.
  //
  // | reason          | what happened                                                            |
  // |-----------------|--------------------------------------------------------------------------|
  // | session_expired | the deadline passed without an answer of the store, or the store ended   |
  // |                 | the session (zk://, etcd:// and testing::MemoryStore)                    |
  // | store_changed   | another cluster answers at this address, or it was set back in time      |
  // |                 | (etcd://)                                                                |
  // | evicted         | the entry was removed: Client::evict(), or an operator's hand            |
  // | closed          | the Client was closed or destroyed                                       |
  // | forked          | this process is a fork of the one that acquired the lock                 |
  std::error_code lost_reason() const noexcept;

  // Returns the state: see LockState. No I/O.
  LockState state() const noexcept;

  // Returns a token whose stop is requested when the lock is lost, and never by a release. Stop
  // callbacks run on threads of the client that do nothing else. They may block, use this Lock and
  // close the client. A callback that blocks delays no other lock's callback, as long as at most
  // 256 callbacks of a client block at once; beyond that the others wait, and the log says so.
  // valid() does not depend on callbacks.
  //
  // Not promised: a stop request in a fork of the process. valid() is false there, but no thread is
  // left to request the stop. A Lock that holds nothing returns a token without a stop state.
  std::stop_token lost_token() const noexcept;

  // Asks the store whether the lock is still held, and returns if it is. Blocks until the store
  // answers, at most `timeout`. Does not move the deadline.
  // Throws
  //  - Error(lock_lost): the lock is lost, before the call or now;
  //  - Error(timeout): no answer in time. The Lock stays as it is, and may still be valid;
  //  - Error(connection_failed), Error(permission_denied), Error(unsupported), Error(store_error):
  //    the store could not answer. The Lock stays as it is, too;
  //  - Error(closed): the client began to close during the call;
  //  - Error(not_held): this Lock is released;
  //  - Error(invalid_argument): the timeout is negative.
  void verify(std::chrono::milliseconds timeout = std::chrono::seconds(5));
  // The same with any other duration, rounded up to milliseconds. A duration that does not fit into
  // milliseconds means no limit.
  template <class R, class P>
  void verify(const std::chrono::duration<R, P>& timeout) {
    verify(internal::timeout_to_ms(timeout));
  }

  // Releases the lock and returns when the store has confirmed that the entry is gone. Blocks at
  // most `timeout`. A Lock that was not lost before the call is released afterwards, also if the
  // call throws; the one exception is Error(invalid_argument), which changes nothing.
  // Throws
  //  - Error(lock_lost): the lock was lost before the call, and stays lost; or the store had
  //    removed the entry already, so that another client may have held the lock before the release;
  //  - Error(timeout): not confirmed in time. The release is retried in the background until the
  //    store confirms it or the session ends;
  //  - Error(session_expired): the session ended before the store confirmed. The store removes the
  //    entry with the session;
  //  - Error(permission_denied), Error(unsupported), Error(store_error): the store refused. The
  //    release is retried in the background, and the log says so once;
  //  - Error(closed): the client began to close during the call, and withdraws its entries;
  //  - Error(not_held): this Lock was released before;
  //  - Error(invalid_argument): the timeout is negative. The lock is kept.
  void release(std::chrono::milliseconds timeout = std::chrono::seconds(5));
  // The same with any other duration, as for verify().
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

// What try_acquire() returns: a std::optional<Lock>, empty if the lock was not granted in time. It
// owns the Lock. One thing differs from std::optional: a temporary TryLock does not convert to
// bool, because its Lock would be released before the answer is used.
//
//   if (baton::TryLock lock = mutex.try_acquire()) { /* the lock is held here */ }
//   bool was_free = mutex.try_acquire().has_value();  // asks without holding
//   if (mutex.try_acquire()) {...}                    // does not compile
class [[nodiscard]] TryLock : public std::optional<Lock> {
 public:
  using std::optional<Lock>::optional;
  explicit operator bool() const& noexcept { return has_value(); }
  explicit operator bool() const&& = delete;
};

}  // namespace baton
