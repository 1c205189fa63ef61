#include "fake_zk.h"

#include <gtest/gtest.h>
#include <zookeeper/zookeeper.h>

#include <algorithm>

namespace baton::zk {

// ---- the transport that the code under test uses

class FakeLine final : public Transport {
 public:
  explicit FakeLine(FakeWire& wire) : wire_(wire) {}
  ~FakeLine() override { wire_.line_gone(); }
  void send(const Request& request, ReplyHandler answer) override {
    wire_.send(request, std::move(answer));
  }
  bool provably_disconnected() const noexcept override { return !wire_.connected(); }
  void close(Task closed) override { wire_.close(std::move(closed)); }

 private:
  FakeWire& wire_;
};

std::unique_ptr<Transport> FakeZk::make_transport(TransportListener& listener) {
  wires_.push_back(std::make_unique<FakeWire>(*this, listener, next_session_++));
  return std::make_unique<FakeLine>(*wires_.back());
}

// ---- one connection

FakeWire::FakeWire(FakeZk& zk, TransportListener& listener, std::int64_t session)
    : zk_(zk), listener_(&listener), session_(session) {}

void FakeWire::send(const Request& request, ReplyHandler answer) {
  if (connected_ && !closing_) {
    log_.push_back(request);
    Item item;
    item.request = request;
    item.answer = std::move(answer);
    to_server_.push_back(std::move(item));
    return;
  }
  // The refusal comes later, in order with the other tasks of the loop.
  zk_.loop_.post([this, answer = std::move(answer)]() mutable {
    if (listener_ == nullptr) return;
    Reply reply;
    reply.code = ZINVALIDSTATE;
    reply.status = status_of(reply.code);
    answer(reply);
  });
}

// The C client answers all requests under way with ZCLOSING, and then reports that it is closed.
void FakeWire::close(Task closed) {
  closing_ = true;
  for (auto& item : drop_all()) {
    item.reply = {};
    item.reply.code = ZCLOSING;
    to_client_.push_back(std::move(item));
  }
  Item last;
  last.kind = Item::Kind::closed;
  last.closed = std::move(closed);
  to_client_.push_back(std::move(last));
  if (connected_) zk_.end(session_);
}

void FakeWire::line_gone() {
  listener_ = nullptr;
  drop_all();
  if (std::exchange(connected_, false)) zk_.end(session_);
}

const FakeTree& FakeWire::tree() const { return behind_tree_ ? *behind_tree_ : zk_.tree_.nodes; }

void FakeWire::connect() { connect_as(session_, zk_.timeout); }

void FakeWire::connect_as(std::int64_t session, std::chrono::milliseconds timeout) {
  behind_tree_ = nullptr;
  connected(session, timeout);
}

void FakeWire::connect_behind() {
  behind_tree_ = seen_tree_;
  connected(session_, zk_.timeout);
}

void FakeWire::catch_up() {
  if (std::exchange(behind_tree_, nullptr)) compare_watches();
}

void FakeWire::connected(std::int64_t session, std::chrono::milliseconds timeout) {
  if (listener_ == nullptr) return;
  connected_ = true;
  heard_at_ = zk_.loop_.now();
  // The C client sends its watches to the server, which reports what happened meanwhile.
  server_watches_ = client_watches_;
  compare_watches();
  zk_.loop_.step([&] { listener_->transport_connected({session, timeout, "fake:2181"}); });
}

bool FakeWire::deliver_request() {
  if (to_server_.empty()) return false;
  Item item = std::move(to_server_.front());
  to_server_.pop_front();
  heard_at_ = zk_.loop_.now();
  item.reply = zk_.carry_out(*this, item.request);
  item.zxid = behind_tree_ ? seen_ : zk_.zxid();
  item.tree = std::make_shared<FakeTree>(tree());
  to_client_.push_back(std::move(item));
  return true;
}

bool FakeWire::deliver_answer() {
  if (to_client_.empty()) return false;
  Item item = std::move(to_client_.front());
  to_client_.pop_front();
  seen_ = std::max(seen_, item.zxid);
  if (item.tree) seen_tree_ = item.tree;
  if (item.kind == Item::Kind::closed) {
    zk_.loop_.step(std::move(item.closed));
    return true;
  }
  if (item.kind == Item::Kind::news) {
    if (client_watches_.erase(item.path) == 0) return true;
    zk_.loop_.step([&] { listener_->transport_event(item.news, item.path); });
    return true;
  }
  if (item.reply.status == Status::ok) {
    if (item.request.kind == Request::Kind::get_watch) client_watches_.insert(item.request.path);
    if (item.request.kind == Request::Kind::unwatch) client_watches_.erase(item.request.path);
  }
  zk_.loop_.step([&] { item.answer(item.reply); });
  return true;
}

void FakeWire::exchange() {
  for (auto n = to_server_.size(); n != 0 && deliver_request();) --n;
  for (auto n = to_client_.size(); n != 0 && deliver_answer();) --n;
}

void FakeWire::settle() {
  for (int round = 0; !idle(); ++round) {
    ASSERT_LT(round, 1'000) << "requests go to and fro for ever";
    exchange();
  }
}

// Drops everything under way. Returns the requests that wait for an answer, oldest first.
std::vector<FakeWire::Item> FakeWire::drop_all() {
  std::vector<Item> asked;
  for (auto* queue : {&to_client_, &to_server_}) {
    for (auto& item : *queue) {
      if (item.kind == Item::Kind::answer) asked.push_back(std::move(item));
    }
    queue->clear();
  }
  server_watches_.clear();
  return asked;
}

void FakeWire::cut() {
  if (!std::exchange(connected_, false)) return;
  auto lost = drop_all();
  zk_.loop_.step([&] { listener_->transport_disconnected(); });
  for (auto& item : lost) {
    if (listener_ == nullptr) return;
    Reply reply;
    reply.code = ZCONNECTIONLOSS;
    zk_.loop_.step([&] { item.answer(reply); });
  }
}

void FakeWire::cut_after_requests() {
  while (deliver_request()) {
  }
  cut();
}

void FakeWire::expire() {
  zk_.end(session_);
  cut();
  if (listener_ == nullptr) return;
  zk_.loop_.step([&] { listener_->transport_ended(Status::expired, {}); });
}

void FakeWire::refuse_credentials() {
  cut();
  zk_.loop_.step([&] { listener_->transport_ended(Status::auth_failed, {}); });
}

void FakeWire::tell(NodeEvent news, const std::string& path) {
  if (server_watches_.erase(path) == 0) return;
  Item item;
  item.kind = Item::Kind::news;
  // No zxid: the header of an event carries -1. So the client accepts a next server that does not
  // know this change.
  item.news = news;
  item.path = path;
  to_client_.push_back(std::move(item));
}

// Reports changes of watched nodes that the client has not seen, in the order of the changes.
void FakeWire::compare_watches() {
  std::map<std::uint64_t, std::pair<NodeEvent, std::string>> news;
  for (const auto& path : server_watches_) {
    const auto node = tree().find(path);
    if (node == tree().end()) {
      news[zk_.tree_.gone_at[path]] = {NodeEvent::gone, path};
    } else if (node->second.changed_at > seen_) {
      news[node->second.changed_at] = {NodeEvent::changed, path};
    }
  }
  for (const auto& [zxid, event] : news) tell(event.first, event.second);
}

// ---- the tree

const FakeNode* FakeZk::find(const std::string& path) const { return tree_.find(path); }

std::vector<std::string> FakeZk::children(const std::string& path) const {
  return fake_children_in(tree_.nodes, path);
}

std::vector<std::string> FakeZk::entries_of(std::int64_t session) const {
  return tree_.entries_of(session);
}

void FakeZk::put(const std::string& path, FakeNode::Kind kind, const std::string& data,
                 std::int64_t owner) {
  if (const std::string up = fake_parent_of(path); !up.empty() && find(up) == nullptr) put(up);
  Reply reply;
  const int code = create({Request::Kind::create_permanent, path, data}, kind, owner, reply);
  ASSERT_EQ(code, ZOK) << path;
}

void FakeZk::write(const std::string& path, const std::string& data) {
  FakeNode& node = tree_.nodes.at(path);
  node.data = data;
  node.changed_at = ++tree_.zxid;
  tell_all(NodeEvent::changed, path);
}

void FakeZk::remove(const std::string& path) {
  for (const auto& child : children(path)) remove(path + "/" + child);
  ASSERT_EQ(erase(path), ZOK) << path;
}

void FakeZk::reap() {
  for (auto path = tree_.reapable(); !path.empty(); path = tree_.reapable()) erase(path);
}

void FakeZk::set_counter(const std::string& directory, std::int32_t next) {
  tree_.nodes.at(directory).next_number = next;
}

void FakeZk::tell_all(NodeEvent news, const std::string& path) {
  for (const auto& wire : wires_) {
    if (!wire->behind_tree_) wire->tell(news, path);
  }
}

void FakeZk::end(std::int64_t session) {
  for (const auto& path : entries_of(session)) erase(path);
}

int FakeZk::erase(const std::string& path) {
  const int code = tree_.erase(path);
  if (code == ZOK) tell_all(NodeEvent::gone, path);
  return code;
}

int FakeZk::create(const Request& request, FakeNode::Kind kind, std::int64_t owner, Reply& reply) {
  const auto now_ms = loop_.now().time_since_epoch() / std::chrono::milliseconds(1);
  return tree_.create(request, kind, owner, 1'700'000'000'000 + now_ms, reply);
}

Reply FakeZk::carry_out(FakeWire& from, const Request& request) {
  Reply reply;
  int code = refuse ? refuse(request) : ZOK;
  const bool read = request.kind == Request::Kind::children || request.kind == Request::Kind::get ||
                    request.kind == Request::Kind::get_watch;
  if (!read && request.kind != Request::Kind::unwatch) from.catch_up();
  if (code == ZOK) {
    switch (request.kind) {
      case Request::Kind::create_entry:
        code = create(request, FakeNode::Kind::entry, from.session_, reply);
        break;
      case Request::Kind::create_container:
        code = create(request, FakeNode::Kind::container, 0, reply);
        break;
      case Request::Kind::create_permanent:
        code = create(request, FakeNode::Kind::permanent, 0, reply);
        break;
      case Request::Kind::remove:
        code = erase(request.path);
        break;
      case Request::Kind::children:
      case Request::Kind::get:
      case Request::Kind::get_watch:
        code = fake_read(from.tree(), request, reply);
        if (code == ZOK && request.kind == Request::Kind::get_watch) {
          from.server_watches_.insert(request.path);
        }
        break;
      case Request::Kind::unwatch:
        code = from.server_watches_.erase(request.path) == 0 ? ZNOWATCHER : ZOK;
        break;
      case Request::Kind::sync:
        break;
    }
  }
  reply.code = code;
  reply.status = status_of(code);
  return reply;
}

}  // namespace baton::zk
