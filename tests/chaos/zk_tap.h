// What one client and its server say to each other, counted by kind on the wire between them.
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

// Messages of one client. Heartbeats go by the clock, so they are kept apart from what a lock
// costs.
struct Traffic {
  std::int64_t create = 0;
  std::int64_t remove = 0;
  std::int64_t list = 0;
  std::int64_t get = 0;  // with a watch or without
  std::int64_t sync = 0;
  std::int64_t unwatch = 0;
  std::int64_t other = 0;
  std::int64_t events = 0;  // from the server: a watch has fired

  std::int64_t beats = 0;   // reads and pings
  std::int64_t proofs = 0;  // heartbeats that are writes

  std::int64_t requests() const { return create + remove + list + get + sync + unwatch + other; }
  // As the server counts packets.
  std::int64_t packets() const { return requests() + beats + proofs; }
  // Without the heartbeats.
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

// A proxy in front of a server that counts. For one client, and locks whose names have eight bytes
// or more: a message is known by its kind and its size, and heartbeats are a sync of "/" and a
// delete of a path of 31 bytes.
class Tap {
 public:
  explicit Tap(std::uint16_t server) : proxy_(server) {
    // Armed for ever: the filter sees each message and lets none count.
    constexpr int kNever = std::numeric_limits<int>::max();
    proxy_.cut_at_frame(test::Direction::kToServer, kNever, true,
                        [log = log_](const test::ZkFrame& frame) { return log->request(frame); });
    proxy_.cut_at_frame(test::Direction::kToClient, kNever, true,
                        [log = log_](const test::ZkFrame& frame) { return log->answer(frame); });
  }

  std::string host() const { return proxy_.host(); }

  // A request is counted before the server gets it, an event before the client does.
  Traffic seen() const {
    const std::lock_guard guard(log_->mutex);
    return log_->traffic;
  }
  // The server has answered all requests that it was sent. For as long as the connection lasts.
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
      constexpr std::size_t kHead = 8;  // number and operation
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
