// One connection through a Proxy, and the faults that act on it. Only for proxy.cpp.
#pragma once

#include "support/http2_frames.h"
#include "support/proxy.h"
#include "support/zk_frames.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace baton::test {

using RelayClock = std::chrono::steady_clock;

// The faults of one direction.
struct Fault {
  bool stalled = false;
  bool dropped = false;
  std::chrono::milliseconds delay{0};
  std::size_t drip = 0;  // bytes at a time; 0: all
  std::chrono::milliseconds drip_every{0};
  // An armed cut: the bytes or messages until it happens.
  std::optional<std::size_t> bytes_left;
  int frames_left = 0;  // ZooKeeper messages
  int grpc_left = 0;
  bool deliver = false;
  ZkFrameFilter filter;
  Http2Filter grpc_filter;

  bool armed() const { return bytes_left || frames_left > 0 || grpc_left > 0; }
  void disarm() {
    bytes_left.reset();
    frames_left = 0;
    grpc_left = 0;
  }
  bool due(RelayClock::time_point t) const { return delay.count() == 0 || t <= RelayClock::now(); }
  bool paced() const { return delay.count() != 0 || drip != 0; }
};

// The state that all connections of a proxy share, by direction.
struct RelayState {
  std::array<Fault, 2> faults;
  std::array<std::atomic<std::uint64_t>, 2> bytes{};
  std::array<std::atomic<std::uint64_t>, 2> frames{};
  std::array<std::atomic<std::uint64_t>, 2> grpc_messages{};
  std::array<std::atomic<std::uint64_t>, 2> drips{};

  static std::size_t index(Direction d) { return d == Direction::kToServer ? 0 : 1; }
  Fault& fault(Direction d) { return faults[index(d)]; }
};

// A port of the proxy and its target; see Proxy::add_route().
struct Route {
  std::uint16_t port;
  std::uint16_t target;
  bool reversed;
  std::chrono::milliseconds patience;
  Proxy::Rewrite rewrite;
};

// Side 0 is the peer that connected to the proxy, side 1 is the target. Owns both sockets. Only one
// thread may use it.
class Relay {
 public:
  // `fd` is an accepted connection. Connects to the target and adds both sockets to `epoll`.
  Relay(RelayState& state, int epoll, int fd, const Route& route);
  ~Relay() { close(false); }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  int fd(std::size_t side) const { return fd_[side]; }

  // Records the events that epoll (edge-triggered) has reported for a side.
  void mark(std::size_t side, std::uint32_t events);
  // Moves all bytes that can be moved now. False: the connection is over.
  bool pump();
  // When to call pump() even without an event.
  std::optional<RelayClock::time_point> next_due() const;

  void close(bool hard);
  // Drops the bytes that it holds in this direction.
  void drop(Direction direction);
  bool lost() const { return pipe_[0].lost || pipe_[1].lost; }
  // A cut has closed one side, and the other side does not know it yet.
  bool severed() const { return severed_; }

 private:
  struct Chunk {
    std::string bytes;
    std::size_t sent = 0;
    RelayClock::time_point due;
  };
  enum class End { kNone, kFin, kReset };
  // One direction. Pipe k reads from side k.
  struct Pipe {
    Direction direction = Direction::kToServer;
    bool readable = false;
    bool writable = false;
    std::deque<Chunk> queue;
    std::size_t held = 0;
    RelayClock::time_point drip_due;  // time of the next piece
    End end = End::kNone;             // how the sender has closed
    RelayClock::time_point end_due;
    bool end_told = false;
    bool receiver_gone = false;
    bool lost = false;  // bytes or a close were dropped
    ZkFrameScanner scanner;
    std::optional<Http2Scanner> grpc_scanner;
    Proxy::Rewrite rewrite;
    std::string start;  // bytes that wait for `rewrite`
  };

  Fault& fault(const Pipe& p) const { return state_.fault(p.direction); }
  // A stream that has lost bytes never continues.
  bool dropping(const Pipe& p) const { return p.lost || fault(p).dropped; }
  void watch(int fd) const;
  void connect_target();
  void refused();
  bool receive(std::size_t k);
  void take(std::size_t k, std::string_view data);
  // The position of the armed cut in this data. Both scanners read all of the data.
  std::optional<std::size_t> cut_in_zk(Pipe& p, std::string_view data);
  std::optional<std::size_t> cut_in_grpc(Pipe& p, std::string_view data);
  void put(Pipe& p, std::string data);
  void ended(Pipe& p, End end);
  bool forward(std::size_t k);
  bool flush(Pipe& p, int to);
  // When the first held bytes may go.
  RelayClock::time_point piece_due(const Pipe& p) const;
  void sever(std::size_t k);
  bool over() const;
  void close_side(std::size_t k, bool hard);

  RelayState& state_;
  const int epoll_;
  const std::uint16_t target_;
  const RelayClock::time_point patience_ends_;
  std::array<int, 2> fd_;
  bool connected_ = false;  // to the target
  bool refused_ = false;    // by the target; refused() is due
  std::optional<RelayClock::time_point> retry_;
  std::array<Pipe, 2> pipe_;
  bool severed_ = false;
};

// Closes with a reset: the peer reads an error, not an end.
void close_hard(int fd);

}  // namespace baton::test
