// Transport: one ZooKeeper session as a line to send requests on. The real one is ClientHandle,
// over the C client; tests have others. Everything happens on the strand of the client's Loop.
#pragma once

#include "common/base/unique_function.h"
#include "zk/status.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace baton::zk {

struct Request {
  enum class Kind {
    create_entry,      // ephemeral and numbered
    create_container,  // goes by itself when it was used and is empty
    create_permanent,
    remove,
    children,
    get,        // with the node's facts
    get_watch,  // the same, and tell when it changes or goes
    unwatch,
    sync,  // what was decided before this is seen by reads after it
  };
  Kind kind;
  std::string path;
  std::string data;
};

struct Reply {
  Status status = Status::lost;
  int code = 0;                       // the C client's, for messages
  std::string path;                   // create: the name given
  std::string data;                   // get
  std::vector<std::string> children;  // children
  std::uint64_t created_at = 0;       // create, get: czxid
  std::int64_t ctime_ms = 0;          // create, get: the server's wall clock
  std::int64_t owner = 0;             // create, get: session of an ephemeral node
};
using ReplyHandler = UniqueFunction<void(Reply&)>;

struct Connection {
  std::int64_t session = 0;
  std::chrono::milliseconds timeout{};  // as granted
  std::string endpoint;
};

enum class NodeEvent { gone, changed };

// Never called inside a call to the line.
class TransportListener {
 public:
  virtual ~TransportListener() = default;
  virtual void transport_connected(const Connection& connection) = 0;
  // Requests under way answer "lost" afterwards.
  virtual void transport_disconnected() = 0;
  // For good. Nothing comes after it.
  virtual void transport_ended(Status why, const std::string& detail) = 0;
  virtual void transport_event(NodeEvent news, const std::string& path) = 0;
};

class Transport {
 public:
  // No answer, news or `closed` comes after this.
  virtual ~Transport() = default;
  // Requests go out in the order of the calls and are answered in that order, once each, never
  // inside the call. While disconnected they answer "lost".
  virtual void send(const Request& request, ReplyHandler answer) = 0;
  // True: no server can have heard of this session since the last disconnect, or at all.
  virtual bool provably_disconnected() const noexcept = 0;
  // Says goodbye to the server. The answer may take seconds.
  virtual void close(Task closed) = 0;
};

}  // namespace baton::zk
