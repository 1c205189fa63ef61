// A TCP proxy on the loopback interface that causes network faults.
#pragma once

#include "support/http2_frames.h"
#include "support/zk_frames.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace baton::test {

enum class Direction { kToServer, kToClient };

constexpr Direction reverse(Direction d) {
  return d == Direction::kToServer ? Direction::kToClient : Direction::kToServer;
}

// One thread (epoll) forwards everything. Any thread may make any call. A call returns when its
// effect is in force: after that the proxy forwards no byte that it should not forward. The proxy
// cannot call back bytes that it has already given to the kernel.
//
// A connection exists until both peers have closed it, or until a fault closes it. So a stalled or
// blackholed connection does not stay behind.
class Proxy {
 public:
  // Listens on a free port of 127.0.0.1 and connects each connection to 127.0.0.1:target_port. If
  // the target does not listen, the proxy accepts the connection, then resets it.
  explicit Proxy(std::uint16_t target_port);
  // Has no port yet: call add_route().
  Proxy();
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  std::uint16_t port() const noexcept { return port_; }
  // "127.0.0.1:port"
  std::string host() const { return "127.0.0.1:" + std::to_string(port_); }

  // ---- Faults that last until heal() ----

  // Closes all connections, and resets each new connection after it is accepted.
  void cut();
  // Holds back bytes and the close of a peer, in order, until resume(). TCP stays open. New
  // connections are accepted and stall, too.
  void stall(Direction direction);
  // Drops bytes and the close of a peer: nothing arrives and nothing is closed. Also drops what
  // stall() or delay() has held back in this direction.
  void blackhole(Direction direction);
  // Ends stall() and blackhole() of this direction. A connection that has lost bytes cannot
  // continue: it stays silent, and is reset when neither direction is blackholed any more.
  void resume(Direction direction);
  // Forwards bytes this much later. Zero: at once, also the bytes that wait now.
  void delay(Direction direction, std::chrono::milliseconds time);
  // Forwards at most this many bytes of a connection at a time, then waits for `every`. So messages
  // arrive in pieces, but complete and in order. 0 bytes: forwards everything at once, also the
  // bytes that wait now.
  void drip(Direction direction, std::size_t bytes, std::chrono::milliseconds every);
  // Ends all faults above and disarms the faults below.
  void heal();

  // ---- Faults that happen once ----

  // Resets (RST) all connections. New connections are served.
  void reset_connections();
  // Each of the faults below closes only the connection on which it happens: the sender's side at
  // once, the receiver's side after the earlier bytes have arrived. New connections are served, so
  // that a client can connect again. One fault can be armed for each direction; the next call
  // replaces it.
  //
  // Cuts after n more bytes in this direction, counted over all connections. The n bytes arrive.
  void cut_after_bytes(Direction direction, std::size_t n);
  // Cuts when the n-th ZooKeeper message from now (1: the next one) that the filter selects has
  // arrived completely. `deliver`: the proxy still forwards that message. Without a filter connects
  // and pings count, too.
  // Lose the n-th request: (kToServer, n, false, zk_requests).
  // Lose the answer, not the request: (kToServer, n, true, zk_requests), or after the server has
  // answered: (kToClient, n, false, zk_requests).
  void cut_at_frame(Direction direction, int n, bool deliver, ZkFrameFilter filter = nullptr);
  // The same for the frames of gRPC, without TLS.
  // Lose the n-th request: (kToServer, n, false, grpc_messages) or grpc_method("KV/Put").
  // Lose the answer, not the request: (kToClient, n, false, ...).
  // A server cancels the calls of a connection when it learns that the connection has ended. So a
  // request that is delivered just before the cut, (kToServer, n, true, ...), may be carried out or
  // not.
  void cut_at_grpc(Direction direction, int n, bool deliver, Http2Filter filter = grpc_messages);
  // Waits until the armed cut of this direction has happened; true also if none was armed.
  bool wait_cut(Direction direction, std::chrono::milliseconds limit = std::chrono::seconds(30));

  // ---- Counters ----

  // Connections that both peers can still use, as far as the peers know.
  int connections() const;
  // All connections accepted so far, with those that cut() has reset.
  std::uint64_t accepted() const;
  // Bytes and complete messages that came from the sender, forwarded or not.
  std::uint64_t bytes(Direction direction) const;
  std::uint64_t frames(Direction direction) const;       // counted as ZooKeeper messages
  std::uint64_t grpc_frames(Direction direction) const;  // gRPC frames with messages
  // How often drip() has forwarded a piece and kept back other bytes.
  std::uint64_t drips(Direction direction) const;

  // ---- For the links between servers ----

  // Opens one more listening port and returns it. `reversed`: the peer that connects to this port
  // counts as the server, so that one proxy can be the link between two machines. `patience`: how
  // long a connection waits for a target that does not listen before it is reset.
  std::uint16_t add_route(std::uint16_t target_port, bool reversed = false,
                          std::chrono::milliseconds patience = std::chrono::milliseconds(0));
  // Receives the first bytes from the peer that connects to this port. Returns the bytes to forward
  // instead, or nullopt if it needs more bytes. Runs on the thread of the proxy.
  using Rewrite = std::function<std::optional<std::string>(std::string_view so_far)>;
  void rewrite_start(std::uint16_t port, Rewrite rewrite);
  // Takes over a non-blocking connection that the caller has accepted, as if it had come by a route
  // to this target. The caller has not read from it.
  void adopt(int fd, std::uint16_t target_port, bool reversed);

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
  std::uint16_t port_ = 0;
};

}  // namespace baton::test
