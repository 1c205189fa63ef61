// The network between the servers of an etcd cluster. Tests cause faults on it.
#pragma once

#include "support/server_links.h"

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

namespace baton::test {

// All members of a cluster use the same address for a peer, because the list of members is
// replicated. So each server has one proxy port that all its peers connect to. To find the peer
// that has opened a connection, this class asks the kernel which server process has the other end.
// (The first request on a connection does not always name its sender.) A connection from another
// process is closed.
class EtcdLinks : public ServerLinks {
 public:
  // The ports on which the servers listen, by index.
  explicit EtcdLinks(std::vector<std::uint16_t> servers);
  ~EtcdLinks();

  // The port on which the other servers reach this server. The server advertises this port.
  std::uint16_t entry(int server) const { return doors_.at(static_cast<std::size_t>(server)).port; }

  // Accepts connections from now on. Until the destructor, another thread calls `process_of`: the
  // process of a server, or -1 if the server does not run.
  void open(std::function<pid_t(int)> process_of);

 private:
  struct Door {
    int fd = -1;
    std::uint16_t port = 0;
  };

  void run() const;
  void let_in(int to) const;
  // The server that has opened the connection.
  std::optional<int> caller(std::uint16_t its_port, std::uint16_t our_port) const;

  const std::vector<std::uint16_t> servers_;
  std::vector<Door> doors_;
  mutable Proxy self_;  // for connections of a server to itself
  int wake_ = -1;
  std::function<pid_t(int)> process_of_;
  std::thread thread_;
};

}  // namespace baton::test
