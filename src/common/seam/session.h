// Session and Backend: the interface that every store implements (the seam). A Session is a small
// asynchronous interface to queues of tickets; it knows nothing about locks. The code above it is
// the same for all stores, the code below it adapts a single store.
//
// Rules for every call and answer:
//  - all calls and all answers happen on the strand of the client's Loop;
//  - a call is answered exactly once, never inside the call itself (use Loop::defer). If the
//    session is destroyed first, the answer never comes;
//  - the caller retries a transient() error with the same nonce; all other errors are final;
//  - a session that has ended reports it once, through SessionListener, and answers nothing
//    afterwards.
#pragma once

#include <baton/client.h>
#include <baton/error.h>
#include <baton/options.h>
#include <baton/result.h>

#include "common/seam/lease_view.h"
#include "common/base/loop.h"
#include "common/seam/ticket.h"
#include "common/base/unique_function.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baton::internal {

template <class T>
using Answer = UniqueFunction<void(Result<T>)>;

struct Done {};

struct WithdrawResult {
  bool found = true;  // the ticket was still there, as far as the store can tell
};

enum class WatchId : std::uint64_t { none = 0 };

// Where the look after an event may read: this server alone has every change up to this revision.
// Only the session that made a hint can use it, and only for the next look after the event.
struct LookHint {
  std::int64_t revision = 0;  // 0: no hint
  std::size_t server = 0;
};

struct WatchEvent {
  enum Kind {
    gone,  // the ticket is gone, and the session has seen every earlier event. If no other ticket
           // is ahead, this is the grant (ZooKeeper, on the connection that read both tickets)
    look,  // something happened, or the watch broke: look again
  };
  // Implicit: most events are only a kind.
  WatchEvent(Kind what, LookHint where = {}) noexcept : kind(what), hint(where) {}
  Kind kind;
  LookHint hint;
};
using WatchHandler = UniqueFunction<void(WatchEvent)>;

// Why a ticket is watched.
struct WatchFor {
  std::optional<Nonce> waiter;  // the waiter's ticket, if its predecessor is watched
  bool soon = false;            // a holder watches its own ticket: may start 100 ms later
};

// Whether a retry may succeed: the store could not be reached, or the answer was lost.
inline bool transient(const Error& error) noexcept {
  return error.errc() == Errc::connection_failed || error.errc() == Errc::timeout;
}

class Session {
 public:
  virtual ~Session() = default;

  // Puts a ticket at the end of the queue and reads the queue. Idempotent: a second join with a
  // nonce whose ticket is in the queue finds that ticket. The caller waits for the answer to the
  // first join before it sends the second.
  virtual void join(const LockName& name, Nonce nonce, Answer<Standing> answer) = 0;

  // Reads where the ticket of this nonce stands, proven by the store, not older than this call.
  // With the hint of an event, the answer may be as old as that event.
  virtual void look(const LockName& name, Nonce nonce, const LookHint& hint,
                    Answer<Standing> answer) = 0;

  // Answers whether the queue has a ticket. Costs no write. For attempts with timeout 0.
  virtual void peek(const LockName& name, Answer<bool> busy) = 0;

  // Calls the handler when the ticket goes, or soon if it is gone already. The first event ends the
  // watch. The ticket may belong to this session.
  virtual WatchId watch(const LockName& name, const Ticket& ticket, const WatchFor& what,
                        WatchHandler handler) = 0;
  virtual void unwatch(WatchId id) = 0;  // no event after this; ignores unknown ids

  // Removes the ticket of this nonce from the queue. An answer without an error means that
  // the ticket is gone and will not appear later, even if its join was never answered.
  virtual void withdraw(const LockName& name, Nonce nonce, Answer<WithdrawResult> answer) = 0;

  // Answers whether the ticket of this nonce is the first of its queue, proven by the store.
  virtual void verify(const LockName& name, Nonce nonce, Answer<bool> answer) = 0;

  // Called directly before verify, inspect, list or evict: the caller waits for the answer until
  // then. The session must start no request for that call afterwards; a later answer is ignored.
  void wanted_until(Time until) noexcept { wanted_until_ = until; }

  virtual void inspect(const LockName& name, Answer<LockSnapshot> answer) = 0;
  virtual void list(std::string_view prefix, Answer<std::vector<std::string>> answer) = 0;
  // Removes exactly this entry, also if it belongs to another client. False: there is no such
  // entry.
  virtual void evict(const LockName& name, std::string_view entry_id, Answer<bool> answer) = 0;

  // Answers with the token base that the store records (?token_base=N), or 0 if there is no record.
  // If wanted > 0 and there is no record, it records `wanted` first; if there is an entry below the
  // root, it answers token_base_in_use() instead. Called once, before all other calls.
  virtual void settle_token_base(std::uint64_t wanted, Answer<std::uint64_t> answer) = 0;

  // Ends the session in the store, which removes all its tickets. The answer may never come while
  // the store cannot be reached, so the caller must limit its wait.
  virtual void close(Answer<Done> answer) = 0;

  virtual std::shared_ptr<LeaseView> lease() const = 0;
  virtual SessionInfo info() const = 0;

  // How often a waiter or holder looks without an event, because a watch may miss events.
  virtual std::chrono::milliseconds backstop() const = 0;

 protected:
  // For the call that starts now.
  Time take_wanted_until() noexcept { return std::exchange(wanted_until_, kNever); }

 private:
  Time wanted_until_ = kNever;
};

// Called by the session, on the strand, never inside a call to the session.
class SessionListener {
 public:
  virtual ~SessionListener() = default;
  // The session has ended permanently: holds are lost, waiters join again. Destroy the session, but
  // not inside this call (use Loop::defer).
  virtual void session_ended(std::error_code reason, const std::string& detail) = 0;
  // The connection was lost and is back. Events of watches may have been missed, so all waiters and
  // holders look.
  virtual void session_resumed() = 0;
};

// Opens the sessions of a client on its store, one at a time, and owns the client's loop.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual Loop& loop() noexcept = 0;
  // Opens a session. On the strand. The listener outlives the session. A later call of open(), or
  // destroying the backend, abandons an open() that was not answered.
  virtual void open(SessionListener& listener, Answer<std::unique_ptr<Session>> answer) = 0;
  // Stops the loop's thread, if it has one. Not on the strand; may be called on the loop's thread.
  virtual void stop() noexcept = 0;
  // Kind and address of the store, for messages: "file /var/lib/baton".
  virtual std::string where() const = 0;
};

// The options of a backend, checked and with defaults filled in.
struct BackendOptions {
  std::chrono::milliseconds session_timeout;
  std::chrono::milliseconds connect_timeout;
  std::string label;
  TlsOptions tls;
  Credentials credentials;
  ZooKeeperOptions zookeeper;
  std::function<void(LogLevel, std::string_view)> log;  // never null; any thread
};

}  // namespace baton::internal
