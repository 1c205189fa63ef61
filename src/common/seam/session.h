// THE SEAM. A backend is a Session: a small asynchronous interface that knows queues of tickets and
// nothing about locks. Everything above it is written once; everything below it is an adapter.
//
// Rules for every call and answer:
//  - all calls and all answers happen on the strand of the client's Loop;
//  - an answer comes exactly once, never inside the call that asked (use Loop::defer), unless the
//    session is destroyed first: then it never comes;
//  - errors: transient() ones are retried by the caller (same nonce), all others are final;
//    a session that is over says so once, through SessionListener, and answers nothing any more.
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

struct Done {
  bool found = true;  // withdraw: the ticket was still there, as far as the store can tell
};

enum class WatchId : std::uint64_t { none = 0 };

enum class WatchEvent {
  gone,  // the ticket is gone, and every event before that was seen: with nobody else ahead,
         // this is the grant (ZooKeeper, on the connection that read both tickets)
  look,  // something happened, or the watch broke: look again
};
using WatchHandler = UniqueFunction<void(WatchEvent)>;

// Why a ticket is watched.
struct WatchFor {
  std::optional<Nonce> waiter;  // my own ticket, if I stand behind the one that is watched
  bool soon = false;            // my own, and I hold: to watch within 100 ms is early enough
};

// Whether an error passes by itself: the store could not be reached, or the answer was lost.
inline bool transient(const Error& error) noexcept {
  return error.errc() == Errc::connection_failed || error.errc() == Errc::timeout;
}

class Session {
 public:
  virtual ~Session() = default;

  // Takes a place at the end of the queue and reads the line in one go. Idempotent: a second join
  // with a nonce whose ticket is there finds that ticket.
  virtual void join(const LockName& name, Nonce nonce, Answer<Standing> answer) = 0;

  // Where my ticket stands now, proven by the store, not older than this call.
  virtual void look(const LockName& name, Nonce nonce, Answer<Standing> answer) = 0;

  // Whether anybody is in line; costs no write. For attempts with timeout 0.
  virtual void peek(const LockName& name, Answer<bool> busy) = 0;

  // Calls the handler once when the ticket goes, or at once if it is gone already; at most one
  // event per watch, then the watch is over. The ticket may be one's own.
  virtual WatchId watch(const LockName& name, const Ticket& ticket, const WatchFor& what,
                        WatchHandler handler) = 0;
  virtual void unwatch(WatchId id) = 0;  // no event after this; unknown ids are fine

  // Takes my ticket out of the queue, by nonce. Done means: it is gone and will not appear later,
  // even if the join that made it was never answered.
  virtual void withdraw(const LockName& name, Nonce nonce, Answer<Done> answer) = 0;

  // Whether my ticket is there and the first in line, proven by the store.
  virtual void verify(const LockName& name, Nonce nonce, Answer<bool> answer) = 0;

  // Said before verify, inspect, list or evict: its caller waits until then and no longer. Nothing
  // may be begun for it afterwards; an answer that comes then is not heard.
  void wanted_until(Time until) noexcept { wanted_until_ = until; }

  virtual void inspect(const LockName& name, Answer<LockSnapshot> answer) = 0;
  virtual void list(std::string_view prefix, Answer<std::vector<std::string>> answer) = 0;
  // Removes exactly this entry, whoever owns it. False: there is none.
  virtual void evict(const LockName& name, std::string_view entry_id, Answer<bool> answer) = 0;

  // Answers with the token base that the store records (?token_base=N); 0: there is no record. With
  // wanted > 0, no record and no entry below the root it records `wanted` first; with an entry it
  // answers token_base_in_use(). Asked once, before all other calls.
  virtual void settle_token_base(std::uint64_t wanted, Answer<std::uint64_t> answer) = 0;

  // Says goodbye: the store forgets all tickets of this session. The answer may never come when the
  // store is out of reach; the caller bounds the wait.
  virtual void close(Answer<Done> answer) = 0;

  virtual std::shared_ptr<LeaseView> lease() const = 0;
  virtual SessionInfo info() const = 0;

  // How often a waiter or holder looks although nothing was heard (watches are hints).
  virtual std::chrono::milliseconds backstop() const = 0;

 protected:
  // For the question that begins now.
  Time take_wanted_until() noexcept { return std::exchange(wanted_until_, kNever); }

 private:
  Time wanted_until_ = kNever;
};

// Told by the session, on the strand, never inside a call to it.
class SessionListener {
 public:
  virtual ~SessionListener() = default;
  // Over for good: holds are lost, waiters join again. Destroy the session (not inside this call:
  // defer it).
  virtual void session_ended(std::error_code reason, const std::string& detail) = 0;
  // Contact was lost and is back; watches may have been missed: everybody looks.
  virtual void session_resumed() = 0;
};

// One store, as one client sees it: makes its sessions, one at a time, and owns its loop.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual Loop& loop() noexcept = 0;
  // Opens a session. On the strand. The listener outlives the session. Destroying the backend, or a
  // later call, abandons an open that was not answered.
  virtual void open(SessionListener& listener, Answer<std::unique_ptr<Session>> answer) = 0;
  // Stops the loop's thread, if it has one. Not on the strand; may be called on the loop's thread.
  virtual void stop() noexcept = 0;
  // Name and place for messages: "file /var/lib/baton".
  virtual std::string where() const = 0;
};

// What a backend is made of, checked and with defaults filled in.
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
