// ClientOptions, MutexOptions, AcquireOptions: what a program can choose.
#pragma once

#include <baton/detail/copy_check.h>
#include <baton/version.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

namespace baton {

// Levels of a log line, from the least to the most urgent.
enum class LogLevel { debug, info, warning, error };

// Transport security: names of PEM files. For etcds://, and for zk:// if the installed ZooKeeper C
// client has TLS (Debian's has not: Error(unsupported)). With etcd:// or an EtcdChannel a file here
// is Error(invalid_argument). No effect on file:// and memory:.
//
//   options.tls = {.ca_file = "/etc/app/ca.pem",
//                  .cert_file = "/etc/app/client.pem",
//                  .key_file = "/etc/app/client.key"};
struct TlsOptions {
  // The authorities that sign the servers' certificates. Empty: the system's authorities. zk://
  // with TLS needs all three files.
  std::string ca_file{};
  // The client's certificate and its key, for mutual TLS. Both or neither: one alone is
  // Error(invalid_argument).
  std::string cert_file{};
  std::string key_file{};
};

// The user that the client authenticates as, on zk:// (digest) and etcd. The password is never an
// option and never part of the URL: it is read when the client connects, from a file or an
// environment variable. A user without one of them is Error(invalid_argument), and so are both.
// etcd:// without TLS sends it in the clear, and the log has a warning; zk:// without TLS refuses
// (see ZooKeeperOptions::plaintext_auth). No effect on file:// and memory:.
//
//   options.credentials = {.user = "orders", .password_file = "/run/secrets/baton"};
struct Credentials {
  std::string user{};           // empty: no authentication
  std::string password_file{};  // the first line of this file
  std::string password_env{};   // or the value of this environment variable
};

// Options for zk:// alone.
struct ZooKeeperOptions {
  // Keep lock directories that are empty. By default they are containers, which the servers remove
  // some time after the last entry. Needed if kazoo shares the locks.
  bool persistent_parents = false;
  // Allow credentials without TLS: the password then crosses the network in the clear. Without this
  // option and without TLS, credentials are Error(invalid_argument).
  bool plaintext_auth = false;
  // With credentials, only their user may read and change the nodes that this client makes. This
  // group may read them too: "scheme:id", like "digest:ops:HASH" or "world:anyone". Without
  // credentials it is Error(invalid_argument).
  std::string read_group{};
};

// One event, for the program's counters and histograms: the argument of ClientOptions::metrics.
struct MetricEvent {
  enum class Kind {
    acquired,         // duration: from the call to the grant
    released,         // duration: how long the lock was held
    lost,             // duration: how long the lock was held
    timed_out,        // duration: how long the call waited
    cancelled,        // duration: how long the call waited
    session_started,  // lock is empty, duration is 0
    session_ended,    // lock is empty, duration is 0
  };
  Kind kind{};
  std::string_view lock{};  // the name; good during the call only
  std::uint64_t token = 0;  // of acquired, released and lost; else 0
  std::chrono::nanoseconds duration{};
};

// Options of a Client. Every member has a default. Values that are not acceptable are
// Error(invalid_argument) at Client::connect(), before the store is contacted.
//
//   baton::ClientOptions options{.session_timeout = std::chrono::seconds(15), .label = "billing"};
//   auto client = baton::Client::connect("etcd://10.0.0.5:2379/app", options);
//
// The functions below are copied and kept by the client. They may be called until close() has
// returned, and in some cases after it: see Client::close().
struct ClientOptions {
  // How long a holder that has crashed can keep others waiting, 1 s to 1 day. A shorter time makes
  // locks more sensitive to pauses and outages. The store may grant another value:
  // SessionInfo::timeout has it. No effect on file:// and memory:.
  std::chrono::milliseconds session_timeout{10'000};

  // The time limit of connect(), of one attempt (timeout 0), and of inspect(), list() and evict().
  // 1 ms to 1 hour.
  std::chrono::milliseconds connect_timeout{5'000};

  // The name of this client, shown to others by inspect() and `baton show`. UTF-8, at most 256
  // bytes, no control characters. Empty: "host:pid".
  std::string label{};

  // Receives log lines. Called on a thread of its own, one call at a time, in order; a call that
  // blocks delays no lock. At most 1,000 lines wait; more are dropped, and a line says how many.
  // What it throws is ignored. Must not call baton. Default: spdlog to stderr, warnings and errors.
  // <baton/spdlog.h> adapts a logger of the program.
  std::function<void(LogLevel, std::string_view)> log{};

  // Runs handlers and resumes coroutines: given a task, it must run it once, later, not inside the
  // call. Called on the client's callback thread, one call at a time. A task that is dropped
  // releases the lock that it carries, and its handler is never called. Default: tasks run on the
  // callback thread, one at a time, in order.
  //
  //   options.executor = [&](std::function<void()> task) { pool.post(std::move(task)); };
  std::function<void(std::function<void()>)> executor{};

  TlsOptions tls{};
  Credentials credentials{};

  // Receives metric events. Called on the client's callback thread (also if there is an executor),
  // one call at a time, never under a lock of baton's. Must not block for long: at most 10,000
  // events wait, more are dropped, and the log says how many. What it throws is logged.
  std::function<void(const MetricEvent&)> metrics{};

  ZooKeeperOptions zookeeper{};
};

// Options of one mutex. None yet: the type exists so that later ones do not break programs.
struct MutexOptions {};

// Options of one acquire.
//
//   baton::Lock inner = mutex.acquire({.timeout = std::chrono::seconds(30),
//                                      .stop = outer.lost_token()});
struct AcquireOptions {
  // How long to wait for the lock.
  //
  // | value               | meaning                                                             |
  // |---------------------|---------------------------------------------------------------------|
  // | unset               | no limit (try_acquire(): the same as 0)                             |
  // | 0                   | one attempt, which takes at most the client's connect_timeout       |
  // | negative            | Error(invalid_argument)                                             |
  // | milliseconds::max() | no limit                                                            |
  //
  // seconds::max() does not fit into milliseconds and overflows before baton sees it. Use
  // acquire_for(), which takes any duration.
  std::optional<std::chrono::milliseconds> timeout{};

  // Cancels the wait with Error(cancelled) when its stop is requested, and leaves no entry behind.
  // A request after the grant has no effect.
  std::stop_token stop{};

  // Not an option. With g++ 12 `co_await mutex.co_acquire({.stop = token})` makes this object by
  // copying the bytes of its members, and destroys the originals too (see CopyCheck). The members
  // of such a copy must not be destroyed: they are replaced by empty ones first. For the same
  // reason AcquireOptions has no move constructor: it would take what the original's destructor
  // destroys. A new member that owns memory must be replaced here too.
  internal::CopyCheck copy_check{};
  ~AcquireOptions() {
    if (!copy_check.constructed()) std::construct_at(&stop);
  }
};

}  // namespace baton
