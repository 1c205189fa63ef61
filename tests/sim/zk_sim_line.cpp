#include "zk_sim_line.h"

#include "bugs.h"
#include "zk/heartbeat.h"

#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <utility>

namespace baton::sim {

using namespace std::chrono_literals;
using internal::TimerId;
using zk::Reply;
using zk::Request;

SimZkLine::SimZkLine(World& world, PortParts parts, ZkEnsemble& ensemble,
                     zk::TransportListener& listener)
    : world_(world), parts_(std::move(parts)), ensemble_(ensemble), listener_(&listener) {
  connect_later(0ms);
}

SimZkLine::~SimZkLine() {
  *alive_ = false;
  parts_.loop->cancel(timer_);
  parts_.loop->cancel(connect_timer_);
  if (pipe_ == nullptr) return;
  // A crashed process sends nothing. Otherwise the session is closed if this message reaches the
  // server.
  if (parts_.life->alive && connected_) {
    pipe_->up([ensemble = &ensemble_, pipe = pipe_.get()] { ensemble->goodbye(pipe->conn); });
  }
  drop(true);
}

// ---- messages

void SimZkLine::to_client(Task task) {
  if (pipe_ == nullptr || pipe_->broken) return;
  if (world_.chance(parts_.weather->lose_answer)) {
    break_off();
    return;
  }
  pipe_->down([this, alive = alive_, pipe = pipe_.get(), task = std::move(task)]() mutable {
    if (!*alive) return;
    parts_.loop->arrive(
        [this, alive, pipe = pipe->shared_from_this(), task = std::move(task)]() mutable {
          if (!*alive || pipe != pipe_) return;
          last_heard_ = parts_.loop->now();
          task();
        });
  });
}

void SimZkLine::break_off() {
  if (pipe_ == nullptr || std::exchange(pipe_->broken, true)) return;
  world_.after(world_.span(0ms, 2ms), [this, alive = alive_, pipe = pipe_] {
    if (!*alive || pipe != pipe_ || pipe == nullptr) return;
    parts_.loop->arrive([this, alive, pipe] {
      if (*alive && pipe == pipe_) disconnect();
    });
  });
}

// ---- connecting

void SimZkLine::connect_later(Nanos least) {
  parts_.loop->cancel(connect_timer_);
  connect_timer_ =
      parts_.loop->at(parts_.loop->now() + least + world_.span(1ms, 60ms), [this] { connect(); });
}

void SimZkLine::connect() {
  if (over_ || pipe_ != nullptr) return;
  int server = static_cast<int>(world_.pick(0, kServers - 1));
  const bool moves = ensemble_.setup().quirks.on(Quirk::zk_session_moved);
  if (!moves && last_server_ >= 0 && world_.chance(0.7)) server = last_server_;
  if (wanted_ >= 0) server = wanted_;
  last_server_ = server;
  pipe_ = std::make_shared<Pipe>(world_, *parts_.weather);
  pipe_->server = server;
  last_sent_ = last_heard_ = parts_.loop->now();
  pipe_->up([this, alive = alive_, pipe = pipe_.get(), hello = ZkHello{session_, watches_, seen_}] {
    if (*alive && !pipe->dropped) pipe->conn = ensemble_.connect(pipe->server, *this, hello);
  });
  parts_.loop->cancel(timer_);
  const auto patience = Nanos(ensemble_.setup().timeout) / 3;
  timer_ = parts_.loop->at(parts_.loop->now() + patience, [this] { disconnect(); });
}

void SimZkLine::accepted(std::int64_t session) {
  to_client([this, session] {
    session_ = session;
    connected_ = first_beat_ = true;
    world_.note("client " + std::to_string(parts_.number) + " is at server " +
                std::to_string(pipe_->server));
    tend();
    listener_->transport_connected({session_, ensemble_.setup().timeout, "sim"});
  });
}

void SimZkLine::expired() {
  to_client([this] {
    const auto alive = alive_;
    world_.note("client " + std::to_string(parts_.number) + " has no session any more");
    drop(false);
    over_ = true;
    const bool was = std::exchange(connected_, false);
    if (was) listener_->transport_disconnected();
    if (*alive) lose_all(ZSESSIONEXPIRED);
    if (*alive) listener_->transport_ended(zk::Status::expired, {});
  });
}

void SimZkLine::hung_up() {
  to_client([this] { disconnect(); });
}

void SimZkLine::drop(bool politely) {
  if (pipe_ == nullptr) return;
  const auto pipe = std::exchange(pipe_, nullptr);
  pipe->dropped = true;
  pipe->forget_down();
  if (pipe->conn != nullptr) pipe->conn->caller = nullptr;
  const auto end = [ensemble = &ensemble_, pipe = pipe.get()] {
    if (pipe->conn != nullptr) ensemble->cut(pipe->conn);
  };
  if (!politely) {
    pipe->forget_up();
    end();
    return;
  }
  // The server receives the messages that were sent, perhaps much later, and then the end of the
  // connection.
  pipe->up(end);
}

void SimZkLine::disconnect() {
  const auto alive = alive_;
  parts_.loop->cancel(timer_);
  drop(world_.chance(0.5));
  if (connected_) world_.note("client " + std::to_string(parts_.number) + " is disconnected");
  if (std::exchange(connected_, false)) listener_->transport_disconnected();
  if (*alive) lose_all(ZCONNECTIONLOSS);
  if (*alive) connect_later(world_.chance(0.2) ? 500ms : 0ms);
}

void SimZkLine::lose_all(int code) {
  const auto alive = alive_;
  auto lost = std::exchange(asked_, {});
  for (const auto& [request, answer, pretended] : lost) {
    if (request.kind != Request::Kind::create_entry) continue;
    unanswered_creates_.insert(request.path.substr(0, request.path.rfind('/')));
  }
  for (auto& asked : lost) {
    if (!*alive) return;
    zk::Reply reply;
    reply.code = code;
    reply.status = zk::status_of(code);
    asked.answer(reply);
  }
}

// Like the C client: pings after T/3 without a request, and disconnects after 2T/3 without an
// answer.
void SimZkLine::tend() {
  parts_.loop->cancel(timer_);
  if (!connected_) return;
  const Nanos timeout = ensemble_.setup().timeout;
  const Time now = parts_.loop->now();
  if (now - last_heard_ >= timeout * 2 / 3) {
    disconnect();
    return;
  }
  if (now - last_sent_ >= timeout / 3) {
    last_sent_ = now;
    pipe_->up([ensemble = &ensemble_, pipe = pipe_.get()] {
      if (pipe->conn != nullptr) ensemble->ping(pipe->conn);
    });
  }
  const Time due = std::min(last_heard_ + timeout * 2 / 3, last_sent_ + timeout / 3);
  timer_ = parts_.loop->at(std::max(due, now + 1ms), [this] { tend(); });
}

// ---- requests

void SimZkLine::send(const zk::Request& request, zk::ReplyHandler answer) {
  if (!connected_) {
    parts_.loop->defer([alive = alive_, answer = std::move(answer)]() mutable {
      if (!*alive) return;
      zk::Reply reply;
      reply.code = ZINVALIDSTATE;
      answer(reply);
    });
    return;
  }
  const bool beat = request.path == "/" || request.path == zk::kMissingNode;
  if (beat && world_.chance(parts_.weather->stop_after_beat)) parts_.on_beat();
  const auto pretended = pretended_answer(request, beat);
  asked_.push_back({request, std::move(answer), pretended});
  last_sent_ = parts_.loop->now();
  if (world_.chance(parts_.weather->lose_request)) break_off();
  if (pipe_->broken) return;
  const Request sent = pretended ? Request{Request::Kind::get, "/", {}} : request;
  pipe_->up([ensemble = &ensemble_, pipe = pipe_.get(), sent] {
    if (pipe->conn != nullptr) ensemble->ask(pipe->conn, sent);
  });
}

// The seeded bugs send a read that a single server answers, instead of a request that involves the
// leader, and pretend that its answer is this one.
std::optional<int> SimZkLine::pretended_answer(const Request& request, bool beat) {
  const bool write = request.kind == Request::Kind::remove;
  if (seeded(Bug::ping_is_proof) && beat) return write ? ZNONODE : ZOK;
  if (!seeded(Bug::find_without_sync) || unanswered_creates_.empty()) return std::nullopt;
  // A heartbeat through the leader before the search would hide the missing sync.
  if (beat) return std::exchange(first_beat_, false) ? std::optional(ZSYSTEMERROR) : std::nullopt;
  const bool searches = request.kind == Request::Kind::sync;
  if (!searches || unanswered_creates_.erase(request.path) == 0) return std::nullopt;
  return ZOK;
}

void SimZkLine::reply(zk::Reply reply, std::uint64_t zxid) {
  to_client([this, reply = std::move(reply), zxid]() mutable {
    if (asked_.empty()) return;
    seen_ = std::max(seen_, zxid);
    Asked asked = std::move(asked_.front());
    asked_.pop_front();
    if (reply.status == zk::Status::ok) {
      if (asked.request.kind == zk::Request::Kind::get_watch) watches_.insert(asked.request.path);
      if (asked.request.kind == zk::Request::Kind::unwatch) watches_.erase(asked.request.path);
    }
    if (asked.pretended && reply.status == zk::Status::ok) {
      reply.code = *asked.pretended;
      reply.status = zk::status_of(reply.code);
    }
    asked.answer(reply);
  });
}

// Leaves seen_ unchanged, because the header of an event carries the zxid -1. So the next server
// may be older than the event.
void SimZkLine::news(zk::NodeEvent news, const std::string& path) {
  to_client([this, news, path] {
    if (watches_.erase(path) > 0) listener_->transport_event(news, path);
  });
}

void SimZkLine::pong() {
  to_client([] {});
}

void SimZkLine::close(Task closed) {
  over_ = true;
  if (pipe_ != nullptr && connected_) {
    pipe_->up([ensemble = &ensemble_, pipe = pipe_.get()] { ensemble->goodbye(pipe->conn); });
  }
  connected_ = false;
  drop(true);
  parts_.loop->at(parts_.loop->now() + 5ms, std::move(closed));
}

}  // namespace baton::sim
