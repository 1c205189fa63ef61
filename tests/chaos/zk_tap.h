// Counts the messages between one client and its server on the wire, by kind.
#pragma once

#include "support/proxy.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <ostream>
#include <string>

namespace baton::chaos {

// The messages of one client. Heartbeats depend on the clock, so they are separate from the cost of
// locks.
struct Traffic {
  std::int64_t create = 0;
  std::int64_t remove = 0;
  std::int64_t list = 0;
  std::int64_t get = 0;  // with a watch or without
  std::int64_t sync = 0;
  std::int64_t unwatch = 0;
  std::int64_t other = 0;
  std::int64_t events = 0;  // from the server: watch events

  std::int64_t beats = 0;   // pings, and heartbeats that are syncs
  std::int64_t proofs = 0;  // heartbeats that are writes

  std::int64_t requests() const { return create + remove + list + get + sync + unwatch + other; }
  // All packets that the server counts.
  std::int64_t packets() const { return requests() + beats + proofs; }
  // The same without heartbeats.
  Traffic business() const {
    Traffic t = *this;
    t.beats = t.proofs = 0;
    return t;
  }
  bool operator==(const Traffic&) const = default;
};

inline Traffic operator+(const Traffic& a, const Traffic& b) {
  return {a.create + b.create, a.remove + b.remove,   a.list + b.list,   a.get + b.get,
          a.sync + b.sync,     a.unwatch + b.unwatch, a.other + b.other, a.events + b.events,
          a.beats + b.beats,   a.proofs + b.proofs};
}
inline Traffic operator-(const Traffic& a, const Traffic& b) {
  return {a.create - b.create, a.remove - b.remove,   a.list - b.list,   a.get - b.get,
          a.sync - b.sync,     a.unwatch - b.unwatch, a.other - b.other, a.events - b.events,
          a.beats - b.beats,   a.proofs - b.proofs};
}

inline std::ostream& operator<<(std::ostream& out, const Traffic& t) {
  return out << "create " << t.create << ", delete " << t.remove << ", list " << t.list << ", get "
             << t.get << ", sync " << t.sync << ", unwatch " << t.unwatch << ", other " << t.other
             << ", events " << t.events << ", heartbeats " << t.beats << " + " << t.proofs;
}

// A proxy that counts the messages to and from a server. It works for one client and for lock names
// of eight bytes or more, because it knows a message by its kind and its size: a heartbeat is a
// sync of "/", or a delete of a path of 31 bytes.
class Tap {
 public:
  explicit Tap(std::uint16_t server) : proxy_(server) {
    // This cut never happens: the filter sees each message and matches none.
    constexpr int kNever = std::numeric_limits<int>::max();
    proxy_.cut_at_frame(test::Direction::kToServer, kNever, true,
                        [log = log_](const test::ZkFrame& frame) { return log->request(frame); });
    proxy_.cut_at_frame(test::Direction::kToClient, kNever, true,
                        [log = log_](const test::ZkFrame& frame) { return log->answer(frame); });
  }

  std::string host() const { return proxy_.host(); }

  // A request is counted before the server receives it, an event before the client receives it.
  Traffic seen() const {
    const std::lock_guard guard(log_->mutex);
    return log_->traffic;
  }
  // True if the server has answered all requests. It is correct only while the connection lasts.
  bool answered() const {
    const std::lock_guard guard(log_->mutex);
    return log_->open == 0;
  }

 private:
  struct Log {
    std::mutex mutex;
    Traffic traffic;
    std::int64_t open = 0;  // requests without an answer

    bool request(const test::ZkFrame& frame) {
      const std::lock_guard guard(mutex);
      ++kind(frame);
      open += frame.xid > 0 ? 1 : 0;
      return false;
    }
    bool answer(const test::ZkFrame& frame) {
      const std::lock_guard guard(mutex);
      traffic.events += frame.xid == -1 ? 1 : 0;
      open -= frame.xid > 0 ? 1 : 0;
      return false;
    }
    std::int64_t& kind(const test::ZkFrame& frame) {
      constexpr std::size_t kHead = 8;  // request number and operation
      constexpr std::size_t kSyncOfTop = kHead + 4 + 1;
      constexpr std::size_t kProof = kHead + 4 + 31 + 4;
      if (frame.xid == -2) return traffic.beats;
      if (frame.xid <= 0) return traffic.other;
      switch (frame.type) {
        case 2:
          return frame.size == kProof ? traffic.proofs : traffic.remove;
        case 4:
          return traffic.get;
        case 8:
          return traffic.list;
        case 9:
          return frame.size == kSyncOfTop ? traffic.beats : traffic.sync;
        case 15:
          return traffic.create;
        case 18:
          return traffic.unwatch;
        default:
          return traffic.other;
      }
    }
  };

  std::shared_ptr<Log> log_ = std::make_shared<Log>();
  test::Proxy proxy_;
};

}  // namespace baton::chaos
