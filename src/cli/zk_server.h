// Asks a ZooKeeper server for its version and mode.
#pragma once

#include <string>

namespace baton::cli {

struct ZkServerFacts {
  std::string version;  // "3.8.0"; empty: the server did not tell it
  std::string mode;     // leader, follower, observer, standalone
};

// Asks the server ("10.0.0.1:2181", "[::1]:2181") with the four-letter word srvr; waits at most one
// second. A server may be configured not to answer it; then the facts are empty.
ZkServerFacts ask_zk_server(const std::string& endpoint) noexcept;

// Parses the answer to srvr.
ZkServerFacts parse_srvr(const std::string& text);

}  // namespace baton::cli
