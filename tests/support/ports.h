// Ports for servers that are started by number.
#pragma once

#include <cstdint>

namespace baton::test {

// A TCP port on which nothing listens, and which no other test process of this user takes while
// this object lives. Below the range from which the kernel gives ports to connections, so that no
// client sits on it while its server is down (a client that connects to a dead port of that range
// again and again one day meets itself).
class PortLease {
 public:
  PortLease();
  ~PortLease();
  PortLease(PortLease&& other) noexcept;
  PortLease& operator=(PortLease&& other) = delete;

  std::uint16_t port() const noexcept { return port_; }

 private:
  int fd_ = -1;
  std::uint16_t port_ = 0;
};

}  // namespace baton::test
