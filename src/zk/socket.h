// The C client's socket, which it keeps to itself.
#pragma once

#include "zk/namespace.h"

#include <sys/socket.h>

#include <set>
#include <string>

namespace baton::zk {

// "10.0.0.1:2181", "[::1]:2181".
std::string peer_text(const sockaddr_storage& peer);

// Marks this process's sockets to that server close-on-exec: the C client does not, and a program
// that was started meanwhile would carry our session. Other connections to the same ZooKeeper
// server are marked too; nobody means to pass those on.
void mark_close_on_exec(const sockaddr_storage& peer) noexcept;

// The C client also makes a pipe to itself when it begins. Remembers the descriptors that are there
// before; mark() marks pipes that came since and look like its own: not blocking, not marked.
class NewPipes {
 public:
  NewPipes();
  void mark() const;

 private:
  std::set<int> before_;
};

}  // namespace baton::zk
