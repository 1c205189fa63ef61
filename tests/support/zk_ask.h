// What a ZooKeeper server says of itself, without a client library.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace baton::test {

// The answer of a server ("127.0.0.1:2181") to a four letter word. Empty: it did not answer in
// full in time, because it is down or paused. The server counts each question as a packet.
std::string four_letter(const std::string& server, const std::string& word,
                        std::chrono::milliseconds limit = std::chrono::seconds(2));

// `mntr`: names and values.
std::map<std::string, std::string> parse_mntr(const std::string& text);

// `dump`: the sessions that live, and what their ends will remove.
struct ZkDump {
  std::set<std::int64_t> sessions;
  std::map<std::int64_t, std::set<std::string>> ephemerals;  // session to paths
};
ZkDump parse_dump(const std::string& text);

// `wchp`: paths with a watch of data or existence, and the sessions that set it. ZooKeeper does not
// list watches of children anywhere; `mntr` zk_watch_count counts them too.
std::map<std::string, std::set<std::int64_t>> parse_wchp(const std::string& text);

// `cons`: one line per connection.
struct ZkConnection {
  std::string peer;          // "127.0.0.1:40000"
  std::int64_t session = 0;  // 0: has none, like the one that asks
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
  std::string last_operation;  // "PING", "CREA" ...
};
std::vector<ZkConnection> parse_cons(const std::string& text);

// Ends a session at the server as its own client would: takes it over (a server derives the
// password from the id alone) and closes it. The client's connection is closed, its next one is
// told that the session has expired; but if the client is at this same server, it may have come
// back just in time to be forgotten, and finds out when nobody answers its pings. True: the session
// is gone, also if it was gone before.
bool end_session(const std::string& server, std::int64_t session,
                 std::chrono::milliseconds limit = std::chrono::seconds(10));

// "0x1000..."
std::string session_text(std::int64_t session);

}  // namespace baton::test
