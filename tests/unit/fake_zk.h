// A ZooKeeper ensemble in memory, and connections to it that move only when the test says so: every
// request and every answer is a step, and the connection can break before and after each of them.
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

// "create_entry /app/job/x", for comparing.
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

// One session and its connection, first in first out in both directions. Outlives the line that the
// code under test has of it.
class FakeWire {
 public:
  FakeWire(FakeZk& zk, TransportListener& listener, std::int64_t session);

  // ---- for the test

  void connect();  // for the first time, or again with the same session
  void connect_as(std::int64_t session, std::chrono::milliseconds timeout);
  // Again, to a server that is behind: it shows what the client has seen before, and nothing newer
  // until it catches up: by a sync, by a write of this session, or by itself.
  void connect_behind();
  void catch_up();
  bool deliver_request();  // the next one reaches the server and is carried out; false: none
  bool deliver_answer();   // the next answer or event reaches the client; false: none
  void exchange();         // all requests sent so far, then all that the server has said so far
  void settle();           // until nothing is under way
  // The connection breaks. What has not reached the server never will; answers under way are lost.
  void cut();
  void cut_after_requests();  // the same, but the server still gets all that was sent
  void expire();              // the server ends the session, and the client hears of it
  void refuse_credentials();  // the same, for another reason

  bool connected() const { return connected_; }
  bool idle() const { return to_server_.empty() && to_client_.empty(); }
  bool line_alive() const { return listener_ != nullptr; }
  std::int64_t session() const { return session_; }
  Time heard_at() const { return heard_at_; }  // when the server last heard of the client
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
  std::set<std::string> client_watches_;         // told to the server again when reconnected
  std::uint64_t seen_ = 0;                       // newest zxid the client knows
  std::shared_ptr<const FakeTree> seen_tree_;    // the same, as a whole
  std::shared_ptr<const FakeTree> behind_tree_;  // what the server shows, if it is behind
  Time heard_at_{};
  std::vector<Request> log_;
};

class FakeZk {
 public:
  explicit FakeZk(ManualLoop& loop) : loop_(loop) {}

  // What a Session makes its lines with. The wires are numbered in that order.
  std::unique_ptr<Transport> make_transport(TransportListener& listener);
  FakeWire& wire(std::size_t i) { return *wires_.at(i); }
  std::size_t wires() const { return wires_.size(); }
  ManualLoop& loop() { return loop_; }

  // ---- the tree, by the hand of an operator
  void put(const std::string& path, FakeNode::Kind kind = FakeNode::Kind::permanent,
           const std::string& data = {}, std::int64_t owner = 0);  // and what is above it
  void write(const std::string& path, const std::string& data);
  void set_ctime(const std::string& path, std::int64_t ms) { tree_.nodes.at(path).ctime_ms = ms; }
  void remove(const std::string& path);  // and what is below it
  void reap();  // containers that were used and are empty go, as far up as it goes
  void set_counter(const std::string& directory, std::int32_t next);
  void end(std::int64_t session);  // its entries go; whoever has it hears nothing
  const FakeNode* find(const std::string& path) const;
  std::vector<std::string> children(const std::string& path) const;
  // Paths of all entries of that session.
  std::vector<std::string> entries_of(std::int64_t session) const;
  std::uint64_t zxid() const { return tree_.zxid; }

  // Asked before a request is carried out; a code other than ZOK is the answer.
  std::function<int(const Request&)> refuse;
  std::chrono::milliseconds timeout{8'000};  // as granted

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
