// Transport: one ZooKeeper session as a way to send requests and receive events. ClientHandle
// implements it with the C client; tests have other implementations. All calls and callbacks run on
// the strand of the client's Loop.
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
    create_container,  // the server deletes it when it was used and is empty
    create_permanent,
    remove,
    children,
    get,        // data and stat of the node
    get_watch,  // the same, and report when the node changes or goes
    unwatch,
    sync,  // later reads see everything committed before this
  };
  Kind kind;
  std::string path;
  std::string data;
};

struct Reply {
  Status status = Status::lost;
  int code = 0;                       // the C client's return code, for messages
  std::string path;                   // create: the name that the server assigned
  std::string data;                   // get
  std::vector<std::string> children;  // children
  std::uint64_t created_at = 0;       // create, get: czxid
  std::int64_t ctime_ms = 0;          // create, get: the server's wall clock
  std::int64_t owner = 0;             // create, get: session of an ephemeral node
};
using ReplyHandler = UniqueFunction<void(Reply&)>;

struct Connection {
  std::int64_t session = 0;
  std::chrono::milliseconds timeout{};  // as the server granted it
  std::string endpoint;
};

enum class NodeEvent { gone, changed };

// Its functions are never called inside a call to the transport.
class TransportListener {
 public:
  virtual ~TransportListener() = default;
  virtual void transport_connected(const Connection& connection) = 0;
  // Requests under way are answered with Status::lost after this.
  virtual void transport_disconnected() = 0;
  // The session has ended. No further call to the listener follows.
  virtual void transport_ended(Status why, const std::string& detail) = 0;
  virtual void transport_event(NodeEvent news, const std::string& path) = 0;
};

class Transport {
 public:
  // No answer, event or `closed` task is called after this.
  virtual ~Transport() = default;
  // Sends requests in the order of the calls. Each is answered once, in the same order, and never
  // inside the call. Without a connection the answer is Status::lost.
  virtual void send(const Request& request, ReplyHandler answer) = 0;
  // True: no server can have heard of this session since the last disconnect, or since its start.
  virtual bool provably_disconnected() const noexcept = 0;
  // Closes the session at the server. `closed` may be called only after seconds.
  virtual void close(Task closed) = 0;
};

}  // namespace baton::zk
