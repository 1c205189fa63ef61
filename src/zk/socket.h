// Finds the descriptors of the C client, which its API does not expose, and marks them
// close-on-exec.
#pragma once

#include "zk/namespace.h"

#include <sys/socket.h>

#include <set>
#include <string>

namespace baton::zk {

// "10.0.0.1:2181", "[::1]:2181".
std::string peer_text(const sockaddr_storage& peer);

// Marks this process's sockets to that server close-on-exec. The C client does not, and a program
// that this process starts would inherit the connection of our session. Other connections of this
// process to the same ZooKeeper server are marked as well; no program needs to inherit them.
void mark_close_on_exec(const sockaddr_storage& peer) noexcept;

// Marks the pipe that the C client creates at its start. The constructor records the existing
// descriptors. mark() marks newer pipes that look like the C client's: non-blocking and without
// close-on-exec.
class NewPipes {
 public:
  NewPipes();
  void mark() const;

 private:
  std::set<int> before_;
};

}  // namespace baton::zk
