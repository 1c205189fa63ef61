// The network between the servers of an etcd cluster.
#pragma once

#include "support/server_links.h"

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

namespace baton::test {

// All members of a cluster know the same address of a peer: it is part of the members' list, which
// is replicated. So there is one port per server that is called, not one per pair, and who calls is
// found out by asking the kernel which server's process has the other end. (Not every first request
// on a connection of theirs names its sender.) A caller that is no server is turned away.
class EtcdLinks : public ServerLinks {
 public:
  // The ports on which the servers really listen, by index.
  explicit EtcdLinks(std::vector<std::uint16_t> servers);
  ~EtcdLinks();

  // Where all others find this server: to be advertised.
  std::uint16_t entry(int server) const { return doors_.at(static_cast<std::size_t>(server)).port; }

  // From now on connections are let in. Called on another thread, until the destructor: the process
  // of a server, -1 if it does not run.
  void open(std::function<pid_t(int)> process_of);

 private:
  struct Door {
    int fd = -1;
    std::uint16_t port = 0;
  };

  void run() const;
  void let_in(int to) const;
  // Among all servers.
  std::optional<int> caller(std::uint16_t its_port, std::uint16_t our_port) const;

  const std::vector<std::uint16_t> servers_;
  std::vector<Door> doors_;
  mutable Proxy self_;  // for what a server says to itself
  int wake_ = -1;
  std::function<pid_t(int)> process_of_;
  std::thread thread_;
};

}  // namespace baton::test
