// Options of clients, mutexes and acquires.
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

enum class LogLevel { debug, info, warning, error };

// Transport security, for etcds:// and ZooKeeper with TLS. Names of PEM files; empty: not used.
struct TlsOptions {
  std::string ca_file{};    // whom we trust; empty: the system's authorities
  std::string cert_file{};  // who we are, for mutual TLS
  std::string key_file{};   // the key of cert_file
};

// Who we are to the store. The password itself is never an option and never part of the URL: it is
// read from a file, or from an environment variable, when the client connects.
struct Credentials {
  std::string user{};
  std::string password_file{};  // first line of this file
  std::string password_env{};   // or the value of this variable
};

// For zk:// alone.
struct ZooKeeperOptions {
  // Lock directories stay when they are empty. By default they are containers, which the servers
  // remove a while after the last entry. Needed if kazoo shares the locks.
  bool persistent_parents = false;
  // Credentials (digest authentication) may go over the network in the clear. Without this, a user
  // needs TLS.
  bool plaintext_auth = false;
  // With credentials only their user may touch our nodes; these may read besides: "scheme:id", like
  // "digest:ops:HASH" or "world:anyone".
  std::string read_group{};
};

// One thing that happened, for counters and histograms of yours.
struct MetricEvent {
  enum class Kind {
    acquired,         // duration: from the call to the grant
    released,         // duration: how long it was held
    lost,             // duration: how long it was held
    timed_out,        // duration: how long we waited
    cancelled,        // duration: how long we waited
    session_started,  // lock is empty
    session_ended,    // lock is empty
  };
  Kind kind{};
  std::string_view lock{};  // valid during the call only
  std::uint64_t token = 0;
  std::chrono::nanoseconds duration{};
};

struct ClientOptions {
  // How long a dead holder can keep others waiting, 1 s to 1 day. The store may grant another
  // value: Client::session() tells. No effect on file:// and memory:.
  std::chrono::milliseconds session_timeout{10'000};
  // Bound of connecting, of one attempt, and of inspect, list and evict. 1 ms to 1 hour.
  std::chrono::milliseconds connect_timeout{5'000};
  // Who we are, shown to others. Default "host:pid". UTF-8, at most 256 bytes, no control bytes.
  std::string label{};
  // Where log lines go; called on a thread of its own, one call at a time, in order. Must not call
  // baton. Default: spdlog to stderr, warnings and up. <baton/spdlog.h> adapts a logger of yours.
  std::function<void(LogLevel, std::string_view)> log{};
  // Where handlers and coroutines resume. It must run what it is given, once, and not inside the
  // call. Default: a thread of the client.
  std::function<void(std::function<void()>)> executor{};
  TlsOptions tls{};
  Credentials credentials{};
  // Called on a thread of the client, never under a lock of baton's. Must not block for long: at
  // most 10,000 events wait, further ones are dropped, and the log tells how many.
  std::function<void(const MetricEvent&)> metrics{};
  ZooKeeperOptions zookeeper{};
};

// Options of one mutex. None yet: the type is here so that later ones do not break programs.
struct MutexOptions {};

struct AcquireOptions {
  // none: wait without limit; 0: one attempt, itself bounded by connect_timeout; negative:
  // Error(invalid_argument). milliseconds::max() means without limit too; seconds::max() does not
  // fit and overflows before baton sees it (acquire_for() takes it).
  std::optional<std::chrono::milliseconds> timeout{};
  // Cancels the wait with Error(cancelled) and leaves no entry behind.
  std::stop_token stop{};

  // Not an option. With g++ 12 `co_await mutex.co_acquire({.stop = token})` makes this object by
  // copying the bytes of its members, whose originals are destroyed too (see CopyCheck). Such a
  // copy must not be destroyed: its members are replaced by empty ones first. For the same reason
  // AcquireOptions has no move constructor: taking what a copied member points to would leave it
  // to the original's destructor. A new member that owns something must be replaced here too.
  internal::CopyCheck copy_check{};
  ~AcquireOptions() {
    if (!copy_check.constructed()) std::construct_at(&stop);
  }
};

}  // namespace baton
