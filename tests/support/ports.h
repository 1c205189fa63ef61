// Ports for servers that tests start.
#pragma once

#include <cstdint>

namespace baton::test {

// A TCP port on which nothing listens. While this object lives, no other test process of this user
// takes the port. The port is below the range that the kernel uses for outgoing connections, so
// that no client uses it while its server is down. (A client that connects again and again to a
// closed port of that range can connect to itself.)
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
