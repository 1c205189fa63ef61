// Client: the connection of a program to a store of locks.
#pragma once

#include <baton/detail/forward.h>
#include <baton/error.h>
#include <baton/mutex.h>
#include <baton/options.h>
#include <baton/result.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace baton {

// One place in the queue of a lock.
struct Entry {
  std::string id;           // names exactly this entry, for evict()
  std::string label;        // who it is; "unknown" for entries of other programs
  std::uint64_t token = 0;  // its fencing token, as Lock::token() tells it
  std::chrono::system_clock::time_point since;  // when it joined the queue; epoch: unknown
};

// A lock as the store shows it. entries.front() is the holder, the others wait in this order.
struct LockSnapshot {
  std::string name;
  std::vector<Entry> entries;
};

enum class SessionState { connecting, connected, suspect, closed };

struct SessionInfo {
  std::string backend;                  // "memory", "file", "zk", "etcd"
  std::string endpoint;                 // the server we talk to, or the directory
  std::chrono::milliseconds timeout{};  // as granted by the store; max() on stores without a lease
  SessionState state = SessionState::closed;
  std::string server_version;  // empty: the store has none
  // file:// only, else -1: the locks of this client live until the last copy of this descriptor is
  // closed. Pass a copy (SCM_RIGHTS) to a process that must outlive this one, and never unlock it.
  // Its number may change later: ask right before use, with a lock held.
  int liveness_fd = -1;
  std::uint64_t token_base = 0;  // ?token_base=N of the URL: part of every token
};

// A connection to one store; gives out mutexes. Move-only, thread-safe. All its locks share one
// session. Opened in one process, useless in a fork of it: there every call fails with
// Error(forked), every hold is lost, and nothing touches the store.
class BATON_API Client {
 public:
  // Connects within options.connect_timeout. URLs: memory:NAME, file:///dir, zk://h:p,h:p/root,
  // etcd://h:p,h:p/root, etcds://... Throws Error(invalid_argument) for bad options or a bad URL
  // before any I/O, Error(unsupported), Error(permission_denied), Error(connection_failed).
  // "?token_base=N" at the end of a URL adds N to every token, for a move from another store. The
  // store records N. A client with another N, or with none, gets Error(invalid_argument); so does
  // the first client with N while any lock of the store has an entry.
  static Client connect(std::string_view url, ClientOptions options = {});
  static Result<Client> try_connect(std::string_view url, ClientOptions options = {}) noexcept;
  // The same over a gRPC channel that you have already: see <baton/etcd_channel.h>.
  static Client connect(const EtcdChannel& channel, ClientOptions options = {});
  static Result<Client> try_connect(const EtcdChannel& channel,
                                    ClientOptions options = {}) noexcept;

  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;  // closes what it was before
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();  // close()

  // A handle to the lock of this name. Throws Error(invalid_name) before any I/O.
  DistributedMutex mutex(std::string_view name, MutexOptions options = {});

  // Holder and waiters, in order. No entries: the lock is free. Bounded by connect_timeout, like
  // list() and evict(): Error(timeout) after that, Error(connection_failed) if there was no session
  // all the time. A session that ends meanwhile is waited out, and the next one is asked; so
  // evict() may say false of an entry that it has removed itself.
  LockSnapshot inspect(std::string_view name);
  // Names of the locks that have an entry, sorted; all of them, or those that begin with prefix.
  std::vector<std::string> list(std::string_view prefix = {});
  // Forced release of exactly that entry. False: there is no such entry (any more). An evicted
  // holder is lost; an evicted waiter joins again at the end.
  bool evict(std::string_view name, std::string_view entry_id);

  // What is known of the session now; asks the client, never the store. With no session at this
  // moment backend is empty and the state says why: connecting, or closed (also of a client that
  // was closed or moved from, and in a fork). Throws Error(timeout) when the client is too busy to
  // answer within 1 s: then nothing is known, and liveness_fd least of all. Ask again.
  SessionInfo session() const;

  // Waiters end with Error(closed), holds are lost, entries are withdrawn; takes at most 5 s. May
  // be called twice, from any thread, also from a handler. The destructor does the same.
  //
  // close() waits for handlers and coroutines of earlier calls on the client's own thread, and for
  // stop callbacks of lost_token(). If all of them return in time, and close() is not called inside
  // one of them, none runs after it. With ClientOptions::executor it waits until the executor has
  // been given all of them, not until it has run them: end or drain the executor before you destroy
  // what handlers use. If a handler or stop callback blocks for longer, close() logs a warning and
  // returns. Then these may still run, each exactly once, also after the destructor has returned:
  //  - the handler or stop callback that blocks, and those queued behind it. A handler gets
  //    Error(closed) or a Lock that is not valid(), never a valid one;
  //  - one call of ClientOptions::metrics that begins at that moment;
  //  - ClientOptions::log, with lines that were written before or that tell of handlers that threw.
  // What they use must live as long.
  //
  // Calls made after close() began: each acquire_async() handler is called once with Error(closed),
  // and close() does not wait for it. The first 100 are called at once, later ones after 1 s, so
  // that a handler that calls again on every error keeps no processor busy. It never ends by
  // itself: stop calling on Errc::closed.
  void close() noexcept;

 private:
  explicit Client(std::shared_ptr<internal::ClientImpl> impl) noexcept;
  std::shared_ptr<internal::ClientImpl> impl_;
};

}  // namespace baton
