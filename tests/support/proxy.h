// A TCP proxy on the loopback that does to a connection what networks do.
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

// One thread (epoll) forwards everything. All calls from any thread; each returns when what it asks
// for is in force: no byte is forwarded after that which should not be. Bytes that the proxy has
// already handed to the kernel are with the receiver and cannot be called back.
//
// A connection is held until both its peers have closed it (or a fault closed it), and no longer,
// so that a stalled or blackholed one does not stay behind.
class Proxy {
 public:
  // Listens on a free port of 127.0.0.1 and connects each connection to 127.0.0.1:target_port. A
  // connection to a server that is down is accepted, then reset.
  explicit Proxy(std::uint16_t target_port);
  // Without a port as yet: add_route().
  Proxy();
  ~Proxy();
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;

  std::uint16_t port() const noexcept { return port_; }
  // "127.0.0.1:port"
  std::string host() const { return "127.0.0.1:" + std::to_string(port_); }

  // ---- Faults that last until heal() ----

  // Closes all connections, and resets each new one right after it was accepted.
  void cut();
  // Holds bytes back, and the news of a peer's close: in order, delivered at resume(). TCP stays
  // open. New connections are accepted and stand still likewise.
  void stall(Direction direction);
  // Drops bytes and the news of a close: nothing ever arrives, nothing is closed. What stall() or
  // delay() held back in this direction is dropped too.
  void blackhole(Direction direction);
  // Ends stall() and blackhole() of this direction. A connection that lost bytes cannot go on: it
  // stays silent, and is reset when neither direction is blackholed any more.
  void resume(Direction direction);
  // Forwards this much later; zero: at once, also what waits now.
  void delay(Direction direction, std::chrono::milliseconds time);
  // Forwards at most so many bytes of a connection at a time, and no more of it before `every` has
  // passed: messages arrive in pieces, whole and in order. 0 bytes: all, also what waits now.
  void drip(Direction direction, std::size_t bytes, std::chrono::milliseconds every);
  // Ends all of the above and disarms what is below.
  void heal();

  // ---- Faults that happen once ----

  // Resets (RST) all connections; new ones are served.
  void reset_connections();
  // All below close the one connection on which it happens: the sender's side at once, the
  // receiver's after it got what came before. New connections are served, so that a client can come
  // back and ask. One of them can be armed per direction; the next call replaces it.
  //
  // After n more bytes in this direction, all connections counted together; the n bytes arrive.
  void cut_after_bytes(Direction direction, std::size_t n);
  // When the n-th ZooKeeper message from now (1: the next one) that the filter counts has come
  // completely; `deliver` says whether it is still forwarded. Connects and pings count unless the
  // filter says otherwise. Lose the n-th request:     (kToServer, n, false, zk_requests)
  //                        lose the answer, not the request: (kToServer, n, true, zk_requests)
  //                        or, after the server has answered: (kToClient, n, false, zk_requests)
  void cut_at_frame(Direction direction, int n, bool deliver, ZkFrameFilter filter = nullptr);
  // The same for the frames of gRPC, without TLS.
  //   lose the n-th request:  (kToServer, n, false, grpc_messages) or grpc_method("KV/Put")
  //   lose the answer, not the request: (kToClient, n, false, ...)
  // A server that learns of the end of a connection gives up the calls that came by it: a request
  // that is delivered just before, (kToServer, n, true, ...), may be done or not.
  void cut_at_grpc(Direction direction, int n, bool deliver, Http2Filter filter = grpc_messages);
  // Waits until the armed cut of this direction has happened; true also if none was armed.
  bool wait_cut(Direction direction, std::chrono::milliseconds limit = std::chrono::seconds(30));

  // ---- Counters ----

  // Connections that both peers can use as far as they know.
  int connections() const;
  // Connections ever accepted, those included that cut() reset.
  std::uint64_t accepted() const;
  // Bytes and whole messages that came from the sender, forwarded or not.
  std::uint64_t bytes(Direction direction) const;
  std::uint64_t frames(Direction direction) const;       // of ZooKeeper, if it speaks that
  std::uint64_t grpc_frames(Direction direction) const;  // with messages in them
  // How often drip() has let a piece go and kept back bytes that had come.
  std::uint64_t drips(Direction direction) const;

  // ---- For the links between servers ----

  // One more listening port. `reversed`: who connects to it counts as the server, so that one proxy
  // can stand for the link between two machines. `patience`: so long a connection waits for a
  // target that does not listen, before it is reset. Returns the port.
  std::uint16_t add_route(std::uint16_t target_port, bool reversed = false,
                          std::chrono::milliseconds patience = std::chrono::milliseconds(0));
  // Gets the first bytes that come from who connects to this port; answers with what to forward
  // instead, or nullopt: it needs more to tell. Called on the thread of the proxy.
  using Rewrite = std::function<std::optional<std::string>(std::string_view so_far)>;
  void rewrite_start(std::uint16_t port, Rewrite rewrite);
  // Takes over a connection (non-blocking) that was accepted elsewhere, as if it had come by a
  // route to this target. Its bytes are as yet unread.
  void adopt(int fd, std::uint16_t target_port, bool reversed);

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
  std::uint16_t port_ = 0;
};

}  // namespace baton::test
