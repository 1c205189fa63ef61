// The transport from a simulated client to a ZkEnsemble. It behaves like the C client, on a network
// with faults.
#pragma once

#include "sim_pipe.h"
#include "sim_store.h"
#include "zk/transport.h"
#include "zk_ensemble.h"

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace baton::sim {

class SimZkLine final : public zk::Transport, private ZkCaller {
 public:
  SimZkLine(World& world, PortParts parts, ZkEnsemble& ensemble, zk::TransportListener& listener);
  ~SimZkLine() override;

  void send(const zk::Request& request, zk::ReplyHandler answer) override;
  bool provably_disconnected() const noexcept override { return pipe_ == nullptr; }
  void close(Task closed) override;

  // For code that controls the connection.
  std::int64_t session() const { return session_; }
  int server() const { return pipe_ == nullptr ? -1 : pipe_->server; }
  bool connected() const { return connected_; }
  void go_to(int server) { wanted_ = server; }  // at the next connect
  void break_off();                             // breaks the connection

 private:
  struct Pipe final : SimPipe {
    using SimPipe::SimPipe;
    int server = 0;
    ZkConnPtr conn;
    bool broken = false;  // a message was lost, so no later message arrives
  };
  using PipePtr = std::shared_ptr<Pipe>;
  struct Asked {
    zk::Request request;
    zk::ReplyHandler answer;
    std::optional<int> pretended{};  // a seeded bug pings instead, and answers with this code
  };

  void connect_later(Nanos least);
  void connect();
  void drop(bool politely);
  void disconnect();
  void tend();
  void to_client(Task task);
  void lose_all(int code);
  std::optional<int> pretended_answer(const zk::Request& request, bool beat);

  // ---- ZkCaller: messages from the server
  void accepted(std::int64_t session) override;
  void expired() override;
  void hung_up() override;
  void reply(zk::Reply reply, std::uint64_t zxid) override;
  void news(zk::NodeEvent news, const std::string& path) override;
  void pong() override;

  World& world_;
  const PortParts parts_;
  ZkEnsemble& ensemble_;
  zk::TransportListener* listener_;
  PipePtr pipe_;  // null: not connected
  bool connected_ = false;
  bool over_ = false;
  int wanted_ = -1;
  int last_server_ = -1;
  std::int64_t session_ = 0;
  std::uint64_t seen_ = 0;
  std::set<std::string> watches_;  // sent to the server again after each connect
  std::deque<Asked> asked_;
  // For the seeded bug find_without_sync.
  std::set<std::string> unanswered_creates_;  // their directories
  bool first_beat_ = true;                    // of the connection
  Time last_heard_{};
  Time last_sent_{};
  internal::TimerId timer_ = internal::TimerId::none;
  internal::TimerId connect_timer_ = internal::TimerId::none;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace baton::sim
