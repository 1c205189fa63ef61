// Asks a ZooKeeper server for its state without a client library.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace baton::test {

// The answer of a server ("127.0.0.1:2181") to a four-letter word. Empty: there was no complete
// answer in time, because the server is down or paused. The server counts each request as a packet.
std::string four_letter(const std::string& server, const std::string& word,
                        std::chrono::milliseconds limit = std::chrono::seconds(2));

// Parses the answer to `mntr`: names and values.
std::map<std::string, std::string> parse_mntr(const std::string& text);

// The answer to `dump`: the live sessions, and the nodes that are removed when they end.
struct ZkDump {
  std::set<std::int64_t> sessions;
  std::map<std::int64_t, std::set<std::string>> ephemerals;  // the paths of each session
};
ZkDump parse_dump(const std::string& text);

// Parses the answer to `wchp`: paths with a data or existence watch, and the sessions that set the
// watch. ZooKeeper does not list watches on children; `mntr` zk_watch_count counts them, too.
std::map<std::string, std::set<std::int64_t>> parse_wchp(const std::string& text);

// One line of the answer to `cons`: a connection.
struct ZkConnection {
  std::string peer;          // "127.0.0.1:40000"
  std::int64_t session = 0;  // 0: no session, like the connection that asks
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
  std::string last_operation;  // "PING", "CREA" ...
};
std::vector<ZkConnection> parse_cons(const std::string& text);

// Ends a session at the server in the way its own client would: takes the session over (a server
// derives the password from the session id alone) and closes it. The server closes the client's
// connection, and tells the client at its next connection that the session has expired. But a
// client of this same server may connect just before the session ends. Then it notices the end only
// when its pings get no answer. True: the session is gone, even if it was gone before.
bool end_session(const std::string& server, std::int64_t session,
                 std::chrono::milliseconds limit = std::chrono::seconds(10));

// "0x1000..."
std::string session_text(std::int64_t session);

}  // namespace baton::test
