// Checks each fault of Proxy on plain sockets, and that it leaves no connection or descriptor
// behind.
#include "support/eventually.h"
#include "support/proxy.h"
#include "support/ports.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace baton::test {
namespace {

constexpr auto kUp = Direction::kToServer;
constexpr auto kDown = Direction::kToClient;
constexpr auto kShort = 100ms;  // how long no byte may arrive

int open_descriptors() {
  const std::filesystem::directory_iterator begin("/proc/self/fd");
  return static_cast<int>(std::distance(begin, std::filesystem::directory_iterator()));
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_port = htons(port);
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return a;
}

// One end of a connection.
class Peer {
 public:
  explicit Peer(int fd) : fd_(fd) {}
  Peer(Peer&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~Peer() { close(); }
  static Peer connect(std::uint16_t port) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto a = loopback(port);
    EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&a), sizeof a), 0);
    return Peer(fd);
  }

  void send(const std::string& text) const {
    EXPECT_EQ(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }
  // Reads n bytes. If fewer bytes arrive, adds "<end>", "<reset>", "<error>" or, after the time
  // limit, "<nothing>" to them.
  std::string read(std::size_t n, std::chrono::milliseconds limit = kLong) const {
    std::string got;
    while (got.size() < n) {
      pollfd p{fd_, POLLIN, 0};
      if (::poll(&p, 1, static_cast<int>(limit.count())) == 0) return got + "<nothing>";
      char buffer[4096];
      const auto r = ::recv(fd_, buffer, std::min(n - got.size(), sizeof buffer), 0);
      if (r == 0) return got + "<end>";
      if (r < 0) return got + (errno == ECONNRESET ? "<reset>" : "<error>");
      got.append(buffer, static_cast<std::size_t>(r));
    }
    return got;
  }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

class Listener {
 public:
  explicit Listener(std::uint16_t port = 0) {
    auto a = loopback(port);
    socklen_t size = sizeof a;
    EXPECT_EQ(::bind(fd_, reinterpret_cast<sockaddr*>(&a), size), 0);
    EXPECT_EQ(::listen(fd_, 64), 0);
    EXPECT_EQ(::getsockname(fd_, reinterpret_cast<sockaddr*>(&a), &size), 0);
    port_ = ntohs(a.sin_port);
  }
  ~Listener() { ::close(fd_); }
  std::uint16_t port() const { return port_; }
  Peer accept() const {
    pollfd p{fd_, POLLIN, 0};
    EXPECT_EQ(::poll(&p, 1, static_cast<int>(kLong.count())), 1);
    return Peer(::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC));
  }

 private:
  int fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::uint16_t port_ = 0;
};

std::string frame(const std::string& body) {
  return std::string{0, 0, 0, static_cast<char>(body.size())} + body;
}
// A create request.
std::string request(char xid) { return frame(std::string{0, 0, 0, xid, 0, 0, 0, 1} + "abc"); }
std::string connect() { return frame(std::string(8, '\0')); }
std::string ping() { return frame(std::string{-1, -1, -1, -2, 0, 0, 0, 11}); }

class ProxyTest : public ::testing::Test {
 protected:
  Listener listener;
  Proxy proxy{listener.port()};
  Peer client = Peer::connect(proxy.port());
  Peer server = listener.accept();
};

TEST_F(ProxyTest, ForwardsBothWaysAndCounts) {
  client.send("hello");
  EXPECT_EQ(server.read(5), "hello");
  server.send("good day");
  EXPECT_EQ(client.read(8), "good day");
  EXPECT_EQ(proxy.bytes(kUp), 5U);
  EXPECT_EQ(proxy.bytes(kDown), 8U);
  EXPECT_EQ(proxy.connections(), 1);
  client.close();
  EXPECT_EQ(server.read(1), "<end>");
  server.close();
  EXPECT_TRUE(eventually("connection forgotten", [&] { return proxy.connections() == 0; }));
}

TEST_F(ProxyTest, CutClosesAndRefusesUntilHealed) {
  proxy.cut();
  EXPECT_EQ(proxy.connections(), 0);
  EXPECT_EQ(client.read(1), "<end>");
  EXPECT_EQ(server.read(1), "<end>");
  EXPECT_EQ(Peer::connect(proxy.port()).read(1), "<reset>");
  EXPECT_EQ(proxy.accepted(), 2U);
  proxy.heal();
  const Peer again = Peer::connect(proxy.port());
  again.send("x");
  EXPECT_EQ(listener.accept().read(1), "x");
}

TEST_F(ProxyTest, StallHoldsOneDirectionAndKeepsTheOrder) {
  proxy.stall(kUp);
  client.send("one ");
  client.send("two ");
  server.send("back");
  EXPECT_EQ(client.read(4), "back");
  EXPECT_EQ(server.read(1, kShort), "<nothing>");
  client.send("three");
  client.close();  // the close is held back, too
  EXPECT_EQ(server.read(1, kShort), "<nothing>");
  proxy.resume(kUp);
  EXPECT_EQ(server.read(100), "one two three<end>");
}

TEST_F(ProxyTest, BlackholeSwallowsBytesAndCloses) {
  proxy.blackhole(kDown);
  client.send("question");
  EXPECT_EQ(server.read(8), "question");
  server.send("answer");
  server.close();
  EXPECT_EQ(client.read(1, kShort), "<nothing>");
  EXPECT_EQ(proxy.connections(), 1);
  proxy.resume(kDown);  // the connection has lost bytes
  EXPECT_EQ(client.read(1), "<reset>");
}

TEST_F(ProxyTest, BlackholeOfAnUnusedConnectionHurtsNothing) {
  proxy.blackhole(kUp);
  proxy.blackhole(kDown);
  proxy.heal();
  client.send("x");
  EXPECT_EQ(server.read(1), "x");
}

TEST_F(ProxyTest, AConnectionWithAHoleIsNotTakenUpAgain) {
  proxy.blackhole(kUp);
  proxy.blackhole(kDown);
  client.send("lost");
  EXPECT_TRUE(eventually("lost", [&] { return proxy.bytes(kUp) == 4; }));
  proxy.resume(kUp);
  client.send("late");
  EXPECT_EQ(server.read(1, kShort), "<nothing>");
  proxy.resume(kDown);
  EXPECT_EQ(server.read(1), "<reset>");
  EXPECT_EQ(client.read(1), "<reset>");
}

TEST_F(ProxyTest, HeldConnectionsEndWhenBothPeersHaveClosed) {
  const int before = open_descriptors();
  proxy.stall(kUp);
  proxy.stall(kDown);
  client.send("held");
  client.close();
  server.send("held");
  server.close();
  EXPECT_TRUE(eventually("stalled one gone", [&] { return proxy.connections() == 0; }));
  proxy.heal();
  proxy.blackhole(kUp);
  proxy.blackhole(kDown);
  for (int i = 0; i < 20; ++i) {
    Peer c = Peer::connect(proxy.port());
    Peer s = listener.accept();
    c.send("x");
    s.send("y");
  }
  EXPECT_TRUE(eventually("dropped ones gone", [&] { return proxy.connections() == 0; }));
  EXPECT_EQ(open_descriptors(), before - 4);  // both peers and the proxy's two sockets are closed
}

TEST_F(ProxyTest, DelayIsKeptInOrder) {
  proxy.delay(kUp, 200ms);
  const Stopwatch watch;
  client.send("a");
  client.send("b");
  EXPECT_EQ(server.read(2), "ab");
  EXPECT_GE(watch.elapsed(), 200ms);
  client.send("c");
  proxy.delay(kUp, 0ms);
  EXPECT_EQ(server.read(1), "c");
}

TEST_F(ProxyTest, DrippedMessagesArriveWholeAndLater) {
  proxy.drip(kUp, 3, 20ms);
  const Stopwatch watch;
  client.send("a message of twenty.");
  server.send("not dripped");
  EXPECT_EQ(client.read(11), "not dripped");
  EXPECT_EQ(server.read(20), "a message of twenty.");
  EXPECT_GE(watch.elapsed(), 6 * 20ms);
  EXPECT_EQ(proxy.drips(kUp), 6U);
  EXPECT_EQ(proxy.drips(kDown), 0U);
  client.send("last words");
  client.close();  // the close waits behind the bytes
  EXPECT_EQ(server.read(100), "last words<end>");
}

TEST_F(ProxyTest, WhatADripHasKeptBackComesAtOnceWhenItIsHealed) {
  proxy.drip(kUp, 2, 1h);
  client.send("abcde");
  EXPECT_EQ(server.read(2), "ab");
  EXPECT_TRUE(eventually("the rest is kept back", [&] { return proxy.drips(kUp) == 1; }));
  EXPECT_EQ(server.read(1, kShort), "<nothing>");
  proxy.heal();
  EXPECT_EQ(server.read(3), "cde");
  client.send("at once, and all of it");
  EXPECT_EQ(server.read(22), "at once, and all of it");
}

TEST_F(ProxyTest, ResetIsAReset) {
  proxy.reset_connections();
  EXPECT_EQ(client.read(1), "<reset>");
  EXPECT_EQ(server.read(1), "<reset>");
  Peer::connect(proxy.port()).send("x");
  EXPECT_EQ(listener.accept().read(1), "x");
}

TEST_F(ProxyTest, CutAfterBytesDeliversJustThose) {
  client.send("before");
  EXPECT_EQ(server.read(6), "before");
  proxy.cut_after_bytes(kUp, 4);
  client.send("123");
  EXPECT_EQ(server.read(3), "123");
  EXPECT_FALSE(proxy.wait_cut(kUp, 0ms));
  client.send("456");
  EXPECT_EQ(server.read(100), "4<end>");
  EXPECT_TRUE(proxy.wait_cut(kUp));
  EXPECT_TRUE(eventually("connection forgotten", [&] { return proxy.connections() == 0; }));
  EXPECT_EQ(client.read(1), "<end>");
}

TEST_F(ProxyTest, CutAtFrameLosesTheRequest) {
  client.send(connect());
  proxy.cut_at_frame(kUp, 2, false, zk_requests);
  const std::string all = request(1) + ping() + request(2) + request(3);
  client.send(all.substr(0, 9));  // a message may arrive in pieces
  EXPECT_EQ(server.read(connect().size() + 9), connect() + all.substr(0, 9));
  client.send(all.substr(9));
  EXPECT_EQ(server.read(1000), all.substr(9, request(1).size() + ping().size() - 9) + "<end>");
  EXPECT_TRUE(proxy.wait_cut(kUp));
  EXPECT_NE(client.read(1), "<nothing>");
}

TEST_F(ProxyTest, CutAtFrameLosesOnlyTheAnswer) {
  proxy.cut_at_frame(kUp, 1, true, zk_operation(1));
  client.send(ping() + request(1));
  EXPECT_EQ(server.read(1000), ping() + request(1) + "<end>");
  server.send("nobody reads this");
  EXPECT_EQ(client.read(1), "<end>");
  EXPECT_EQ(proxy.frames(kUp), 2U);
}

TEST_F(ProxyTest, CutAtFrameOfAnAnswer) {
  proxy.cut_at_frame(kDown, 1, false, zk_requests);
  client.send(request(1));
  EXPECT_EQ(server.read(request(1).size()), request(1));
  server.send(ping() + request(1));
  EXPECT_EQ(client.read(1000), ping() + "<end>");
  EXPECT_EQ(server.read(1), "<end>");
}

TEST(ProxyLife, ADeadServerInABlackholeIsJustSilent) {
  Proxy proxy(1);  // nothing listens there
  EXPECT_EQ(Peer::connect(proxy.port()).read(1), "<reset>");
  proxy.blackhole(kDown);
  const Peer client = Peer::connect(proxy.port());
  EXPECT_EQ(client.read(1, kShort), "<nothing>");
  proxy.heal();
  EXPECT_EQ(client.read(1), "<reset>");
}

TEST(ProxyLife, APatientRouteWaitsForALateServer) {
  const PortLease late;
  Proxy proxy;
  const Peer client = Peer::connect(proxy.add_route(late.port(), false, kLong));
  client.send("early");
  EXPECT_TRUE(eventually("sent", [&] { return proxy.bytes(kUp) == 5; }));
  const Listener listener(late.port());
  EXPECT_EQ(listener.accept().read(5), "early");
}

TEST(PortLeases, NoTwoAreTheSame) {
  std::vector<PortLease> all;
  std::set<std::uint16_t> ports;
  for (int i = 0; i < 100; ++i) ports.insert(all.emplace_back().port());
  EXPECT_EQ(ports.size(), 100U);
}

TEST(ProxyLife, LeavesNothingBehind) {
  const int before = open_descriptors();
  {
    const Listener listener;
    Proxy proxy(listener.port());
    const Peer client = Peer::connect(proxy.port());
    const Peer server = listener.accept();
    proxy.stall(kUp);
    client.send("held");
  }
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace baton::test
