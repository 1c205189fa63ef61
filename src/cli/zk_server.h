// What a ZooKeeper server says of itself.
#pragma once

#include <string>

namespace baton::cli {

struct ZkServerFacts {
  std::string version;  // "3.8.0"; empty: it did not say
  std::string mode;     // leader, follower, observer, standalone
};

// Asks the server ("10.0.0.1:2181", "[::1]:2181") with the four letter word srvr, within a second.
// Servers may be told not to answer it.
ZkServerFacts ask_zk_server(const std::string& endpoint) noexcept;

// The answer's text, taken apart.
ZkServerFacts parse_srvr(const std::string& text);

}  // namespace baton::cli
