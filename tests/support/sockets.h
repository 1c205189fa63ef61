// Finds out which process owns which TCP connection of this machine.
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

// All IPv4 connections in the kernel's list. A connection that opens or closes meanwhile may be
// missing.
std::vector<TcpEnd> tcp_ends();

// The inode of one end of a connection on 127.0.0.1: the end with the port `local`. 0: there is no
// such connection, or the process of that end has closed it. Asks the kernel for just this
// connection, because the full list takes 20 ms.
std::uint64_t inode_of(std::uint16_t local, std::uint16_t remote);

// The inodes of the sockets that a process has open. Empty if the process is gone.
std::set<std::uint64_t> sockets_of(pid_t process);

// The number of connections to these ports that other processes have opened.
int connections_of_others(const std::set<std::uint16_t>& ports);

}  // namespace baton::test
