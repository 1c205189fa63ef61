// A ZooKeeper ensemble in memory. Its connections move only when the test calls: every request and
// every answer is one step, and a connection can break before and after each step.
#pragma once

#include "fakes/fake_zk_tree.h"
#include "manual_loop.h"
#include "zk/transport.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace baton::zk {

// Returns for example "create_entry /app/job/x", for comparisons.
inline std::string text(const Request& request) {
  static constexpr const char* kNames[] = {"create_entry", "create_container", "create_permanent",
                                           "remove",       "children",         "get",
                                           "get_watch",    "unwatch",          "sync"};
  return std::string(kNames[static_cast<std::size_t>(request.kind)]) + " " + request.path;
}
inline std::vector<std::string> texts(const std::vector<Request>& requests) {
  std::vector<std::string> all;
  for (const auto& request : requests) all.push_back(text(request));
  return all;
}
using Texts = std::vector<std::string>;

class FakeZk;

// One session and its connection, first in first out in both directions. Outlives the transport
// that the code under test has.
class FakeWire {
 public:
  FakeWire(FakeZk& zk, TransportListener& listener, std::int64_t session);

  // ---- for the test

  void connect();  // for the first time, or again with the same session
  void connect_as(std::int64_t session, std::chrono::milliseconds timeout);
  // Reconnects to a server that lags behind. It shows what the client has already seen, and nothing
  // newer until it catches up: by a sync, by a write of this session, or by catch_up().
  void connect_behind();
  void catch_up();
  bool deliver_request();  // the server executes the next request; false: there is none
  bool deliver_answer();   // the client gets the next answer or event; false: there is none
  void exchange();         // delivers all requests sent so far, then all answers and events
  void settle();           // delivers until nothing is under way
  // Breaks the connection. Requests that have not reached the server are lost, and so are the
  // answers under way.
  void cut();
  void cut_after_requests();  // the same, but the server first executes all sent requests
  void expire();              // the server ends the session, and the client learns it
  void refuse_credentials();  // the client learns that its credentials are refused

  bool connected() const { return connected_; }
  bool idle() const { return to_server_.empty() && to_client_.empty(); }
  bool line_alive() const { return listener_ != nullptr; }
  std::int64_t session() const { return session_; }
  Time heard_at() const { return heard_at_; }  // when the server last received anything
  std::size_t requests() const { return to_server_.size(); }
  std::size_t answers() const { return to_client_.size(); }
  const Request& next_request() const { return to_server_.front().request; }
  // Everything sent since the last call, in order.
  std::vector<Request> take_log() { return std::exchange(log_, {}); }
  const std::set<std::string>& watches() const { return server_watches_; }

 private:
  friend class FakeZk;
  friend class FakeLine;
  struct Item {
    enum class Kind { answer, news, closed } kind = Kind::answer;
    Request request{};
    ReplyHandler answer{};
    Reply reply{};
    NodeEvent news{};
    std::string path{};
    Task closed{};
    std::uint64_t zxid = 0;
    std::shared_ptr<const FakeTree> tree{};
  };
  void send(const Request& request, ReplyHandler answer);
  void close(Task closed);
  void line_gone();
  void tell(NodeEvent news, const std::string& path);
  void connected(std::int64_t session, std::chrono::milliseconds timeout);
  void compare_watches();
  const FakeTree& tree() const;
  std::vector<Item> drop_all();

  FakeZk& zk_;
  TransportListener* listener_;
  const std::int64_t session_;
  bool connected_ = false;
  bool closing_ = false;
  std::deque<Item> to_server_;
  std::deque<Item> to_client_;
  std::set<std::string> server_watches_;         // of this connection
  std::set<std::string> client_watches_;         // the client sends them again after a reconnect
  std::uint64_t seen_ = 0;                       // newest zxid that the client knows
  std::shared_ptr<const FakeTree> seen_tree_;    // the tree at that zxid
  std::shared_ptr<const FakeTree> behind_tree_;  // what the server shows while it is behind
  Time heard_at_{};
  std::vector<Request> log_;
};

class FakeZk {
 public:
  explicit FakeZk(ManualLoop& loop) : loop_(loop) {}

  // The transport factory of a Session. Wires are numbered in the order of these calls.
  std::unique_ptr<Transport> make_transport(TransportListener& listener);
  FakeWire& wire(std::size_t i) { return *wires_.at(i); }
  std::size_t wires() const { return wires_.size(); }
  ManualLoop& loop() { return loop_; }

  // ---- the tree, and changes by an operator
  void put(const std::string& path, FakeNode::Kind kind = FakeNode::Kind::permanent,
           const std::string& data = {}, std::int64_t owner = 0);  // also creates its parents
  void write(const std::string& path, const std::string& data);
  void set_ctime(const std::string& path, std::int64_t ms) { tree_.nodes.at(path).ctime_ms = ms; }
  void remove(const std::string& path);  // also removes what is below
  void reap();  // removes containers that have had children and are empty, until there are none
  void set_counter(const std::string& directory, std::int32_t next);
  void end(std::int64_t session);  // removes its entries; does not tell its client
  const FakeNode* find(const std::string& path) const;
  std::vector<std::string> children(const std::string& path) const;
  // Paths of all entries of that session.
  std::vector<std::string> entries_of(std::int64_t session) const;
  std::uint64_t zxid() const { return tree_.zxid; }

  // Called before a request is executed. A code other than ZOK becomes the answer.
  std::function<int(const Request&)> refuse;
  std::chrono::milliseconds timeout{8'000};  // the granted session timeout

 private:
  friend class FakeWire;
  Reply carry_out(FakeWire& from, const Request& request);
  int create(const Request& request, FakeNode::Kind kind, std::int64_t owner, Reply& reply);
  int erase(const std::string& path);
  void tell_all(NodeEvent news, const std::string& path);

  ManualLoop& loop_;
  FakeZkTree tree_;
  std::vector<std::unique_ptr<FakeWire>> wires_;
  std::int64_t next_session_ = 0x1000;
};

}  // namespace baton::zk
