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

// One entry in the queue of a lock.
struct Entry {
  std::string id;           // names exactly this entry, for Client::evict()
  std::string label;        // ClientOptions::label of its client; "unknown": not written by baton
  std::uint64_t token = 0;  // the fencing token: what Lock::token() returns when the entry holds
  std::chrono::system_clock::time_point since;  // when it joined the queue; the epoch: unknown
};

// The queue of one lock, as the store showed it at one moment. It may have changed since.
struct LockSnapshot {
  std::string name;
  std::vector<Entry> entries;  // in queue order: the first one holds, the others wait
};

// The states of a client's session.
//
// | state      | meaning                                    | how it ends                         |
// |------------|--------------------------------------------|-------------------------------------|
// | connecting | there is no session; the client retries    | connected when the store accepts    |
// |            | until close(). Locks of the last session   | one. Waiters then join the queue    |
// |            | are lost                                   | again                               |
// | connected  | the store has answered in time             | suspect, connecting or closed       |
// | suspect    | the connection is cut, or an answer is     | connected if contact is back in     |
// |            | overdue. Locks are valid until their       | time, else connecting               |
// |            | deadline                                   |                                     |
// | closed     | close() has begun; or the Client was moved | never                               |
// |            | from; or this process is a fork            |                                     |
//
// file:// and memory: have no lease: there the state is connected until close().
enum class SessionState { connecting, connected, suspect, closed };

// What Client::session() returns. While there is no session, all members but `state` are empty.
struct SessionInfo {
  std::string backend;                  // "memory", "file", "zk", "etcd"
  std::string endpoint;                 // the server in use, or the directory
  std::chrono::milliseconds timeout{};  // as granted by the store; max() on stores without a lease
  SessionState state = SessionState::closed;
  std::string server_version;  // etcd only, else empty
  // file:// only, else -1: the locks of this client live until the last copy of this descriptor is
  // closed. Pass a copy (SCM_RIGHTS) to a process that must outlive this one, and never unlock it.
  // The client owns the descriptor, and its number may change: ask right before use, with a lock
  // held.
  int liveness_fd = -1;
  std::uint64_t token_base = 0;  // ?token_base=N of the URL: part of every token
};

// A connection to one store, from which mutexes are made. Move-only. Owns one session, in which all
// its locks live, and the threads that serve it: keep one Client per store and share it.
//
//   auto client = baton::Client::connect("zk://10.0.0.5:2181,10.0.0.6:2181/orders");
//   auto mutex = client.mutex("orders/7");
//   baton::Lock lock = mutex.acquire_for(std::chrono::seconds(30));
//
// Threads: all calls are thread-safe; moving or destroying a Client while another thread uses it is
// not. Mutexes and locks may outlive their Client: calls then fail with Error(closed), and the
// locks are lost.
//
// In a fork of the process a Client is of no use: calls that need the store fail with
// Error(forked), its locks are lost there, session() says closed, close() does nothing, and nothing
// touches the parent's locks. Open a new Client in the fork; with etcd, call exec first.
class BATON_API Client {
 public:
  // Opens a session and returns the Client that owns it, within options.connect_timeout.
  //
  // | URL                                                 | store                              |
  // |-----------------------------------------------------|------------------------------------|
  // | memory: or memory:NAME                              | this process                       |
  // | file:///dir                                         | all processes of one machine       |
  // | zk://host:port,host:port/root                       | ZooKeeper 3.5 or later             |
  // | etcd://host:port,host:port/root, etcds:// with TLS  | etcd 3.4 or later                  |
  //
  // "?token_base=N" at the end adds N to every token, for a move from another store. The store
  // records N with the first client that has it; N is 0 to 2^62, and absent means 0.
  //
  // Throws
  //  - Error(invalid_argument): the URL or an option is not acceptable, or a file that an option
  //    names cannot be used (before the store is contacted). Or the store records another token
  //    base; or none, while a lock has an entry already;
  //  - Error(connection_failed): no session within connect_timeout, or the directory cannot be
  //    used, or the process is out of threads, descriptors or memory;
  //  - Error(permission_denied): the store refuses the credentials, or the directory is not safe or
  //    not accessible;
  //  - Error(unsupported): this build lacks the store or TLS for it; the server is too old; the
  //    file system is not suitable; or, with etcd, this process is a fork of one that used etcd;
  //  - Error(store_error): the store answered something that baton cannot read.
  static Client connect(std::string_view url, ClientOptions options = {});
  // connect() for code without exceptions: returns the Client or the Error.
  //
  //   auto client = baton::Client::try_connect("file:///var/lib/orders/locks");
  //   if (!client) return client.error().errc();
  static Result<Client> try_connect(std::string_view url, ClientOptions options = {}) noexcept;
  // The same over a gRPC channel of the program: see <baton/etcd_channel.h>.
  static Client connect(const EtcdChannel& channel, ClientOptions options = {});
  static Result<Client> try_connect(const EtcdChannel& channel,
                                    ClientOptions options = {}) noexcept;

  Client(Client&&) noexcept;             // the source then answers closed to everything
  Client& operator=(Client&&) noexcept;  // first closes this Client, as close() does
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client();  // close()

  // Returns a handle to the lock of this name. No I/O: the lock need not exist, and is not
  // acquired. Throws Error(invalid_name), also on a closed client; Error(closed) on a moved-from
  // Client. On a closed client it returns a handle whose calls fail with Error(closed).
  DistributedMutex mutex(std::string_view name, MutexOptions options = {});

  // Returns the entries of a lock, in queue order. No entries: the lock is free.
  //
  //   for (const baton::Entry& entry : client.inspect("orders/7").entries) {
  //     std::cout << entry.id << " " << entry.label << " " << entry.token << "\n";
  //   }
  //
  // Blocks at most the client's connect_timeout. inspect(), list() and evict() throw one of the
  // OUTCOMES OF A QUESTION:
  //
  // | Errc              | when                                                                 |
  // |-------------------|----------------------------------------------------------------------|
  // | invalid_name      | not a lock name, or not the beginning of one; before any I/O         |
  // | timeout           | no answer within connect_timeout                                     |
  // | connection_failed | there was no session for all of that time                            |
  // | session_expired   | the session ended during the call, too late for another attempt      |
  // | closed            | the client is closed, was closed during the call, or was moved from  |
  // | forked            | this process is a fork of the one that opened the client             |
  // | invalid_argument  | a new session found another token base in the store                  |
  // | permission_denied | the store refuses the client's credentials                           |
  // | unsupported       | the server lacks a feature that baton needs                          |
  // | store_error       | the store's answer or its data makes no sense                        |
  //
  // If the session ends during the call, the question is asked again in the next session.
  LockSnapshot inspect(std::string_view name);

  // Returns the names of the locks that have an entry, sorted. With a prefix: those that begin with
  // it, byte by byte ("ord" and "orders/" are prefixes of "orders/7"). Outcomes: see inspect(). On
  // zk:// without a root, store_error also means that there are too many directories of others: use
  // a root or a prefix.
  std::vector<std::string> list(std::string_view prefix = {});

  // Removes exactly this entry, which is a forced release. True: it was removed. False: there is no
  // such entry (any more). Because a question is asked again when the session ends, false may also
  // be returned for an entry that this call has removed. Outcomes: see inspect(); also
  // Error(invalid_argument) for an entry id that is empty or longer than 500 bytes.
  //
  //   const auto queue = client.inspect("orders/7").entries;
  //   if (!queue.empty()) client.evict("orders/7", queue.front().id);
  //
  // An evicted holder loses its lock: at once on file:// and memory:, within 1 s on the others
  // while it has contact, else at its deadline. The next client may be granted the lock before
  // that: until then only the token protects the resource. An evicted waiter joins again at the
  // end.
  bool evict(std::string_view name, std::string_view entry_id);

  // Returns what the client knows of its session now. Asks the client, never the store. Throws
  // Error(timeout) if the client is too busy to answer within 1 s: then nothing is known, and the
  // program should ask again.
  SessionInfo session() const;

  // Closes the client and returns within 5 s. Waiters end with Error(closed), locks are lost with
  // reason closed, entries are withdrawn. May be called twice, on any thread, also in a handler or
  // a stop callback. The destructor does the same. If the store cannot be reached, the entries go
  // when it ends the session.
  //
  // close() waits for handlers and coroutines of earlier calls on the client's callback thread, and
  // for stop callbacks of lost_token(). If all of them return in time, and close() is not called
  // inside one of them, none runs after it. With ClientOptions::executor it waits until the
  // executor has been given all of them, not until it has run them: end or drain the executor
  // before you destroy what handlers use.
  //
  // If a handler or stop callback blocks for longer, close() logs a warning and returns. Then these
  // may still run, each exactly once, also after the destructor has returned:
  //  - the handler or stop callback that blocks, and those queued behind it. A handler gets
  //    Error(closed) or a Lock that is not valid(), never a valid one;
  //  - one call of ClientOptions::metrics that begins at that moment;
  //  - ClientOptions::log, with lines that were written before or that report handlers that threw.
  // What they use must live as long.
  //
  // After close() began, acquire_async() still calls each handler once, with Error(closed), and
  // close() does not wait for it. The first 100 calls are prompt, later ones are delayed by 1 s, so
  // that a handler that acquires again on every error does not keep a processor busy. Such a
  // handler never ends by itself: stop acquiring on Errc::closed.
  void close() noexcept;

 private:
  explicit Client(std::shared_ptr<internal::ClientImpl> impl) noexcept;
  std::shared_ptr<internal::ClientImpl> impl_;
};

}  // namespace baton
