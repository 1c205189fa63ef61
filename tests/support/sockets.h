// Which process has which TCP connection of this machine.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <vector>

namespace baton::test {

// One end of a connection. A connection within the machine has two.
struct TcpEnd {
  std::uint16_t local = 0;  // ports
  std::uint16_t remote = 0;
  bool established = false;
  std::uint64_t inode = 0;  // 0: its process has closed it
};

// All of IPv4, as the kernel lists them: one that opens or closes meanwhile may be missing.
std::vector<TcpEnd> tcp_ends();

// The inode of the end of a connection on 127.0.0.1 that has this port of its own; 0: there is
// none, or its process has closed it. Asks the kernel for just this one: its list takes it 20 ms.
std::uint64_t inode_of(std::uint16_t local, std::uint16_t remote);

// Sockets that a process has open, by inode; none if it is gone.
std::set<std::uint64_t> sockets_of(pid_t process);

// Connections to these ports that another process has opened.
int connections_of_others(const std::set<std::uint16_t>& ports);

}  // namespace baton::test
