// A simulated ZooKeeper ensemble of three servers, message by message. It has a log that a majority
// confirms, followers that apply the log later, sessions that only the leader ends, and elections.
//
// The leader measures a session's time from the last message that it receives about the session.
// With zk_touch_table it receives this message for a follower's session with the follower's answer
// to a ping, every half tick, and expiry rounds up to whole ticks. Every server answers reads and
// pings. Only the leader answers sync.
#pragma once

#include "fakes/fake_zk_tree.h"
#include "quirks.h"
#include "sim_loop.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace baton::sim {

inline constexpr int kServers = 3;

// Receives the messages of a server on a connection and carries them to the client.
class ZkCaller {
 public:
  virtual ~ZkCaller() = default;
  virtual void accepted(std::int64_t session) = 0;
  virtual void expired() = 0;  // the session has ended
  virtual void hung_up() = 0;  // the server closes or refuses the connection
  virtual void reply(zk::Reply reply, std::uint64_t zxid) = 0;
  virtual void news(zk::NodeEvent news, const std::string& path) = 0;
  virtual void pong() = 0;
};

// The server's side of one connection.
struct ZkConn {
  struct Asked {
    zk::Request request;
    std::uint64_t number = 0;
    std::optional<zk::Reply> reply;  // the leader's answer, if the leader was asked
  };
  int server = 0;
  std::uint64_t id = 0;
  std::int64_t session = 0;  // 0: not accepted yet
  bool open = true;
  std::deque<Asked> asked;
  std::set<std::string> watches;
  ZkCaller* caller = nullptr;  // null: the client has closed its side
};
using ZkConnPtr = std::shared_ptr<ZkConn>;

struct ZkHello {
  std::int64_t session = 0;  // 0: opens a new session
  std::set<std::string> watches;
  std::uint64_t seen = 0;  // newest zxid the client knows
};

class ZkEnsemble {
 public:
  struct Setup {
    std::chrono::milliseconds timeout{4'000};
    std::chrono::milliseconds tick{2'000};
    int sync_limit = 5;
    Quirks quirks;
    std::array<std::int64_t, kServers> rates{};  // of the servers' clocks, in ppm
  };
  ZkEnsemble(World& world, Setup setup);
  ~ZkEnsemble();

  // ---- messages that reach a server now
  ZkConnPtr connect(int server, ZkCaller& caller, const ZkHello& hello);
  void ask(const ZkConnPtr& conn, zk::Request request);
  void ping(const ZkConnPtr& conn);
  void goodbye(const ZkConnPtr& conn);  // closes the session
  void cut(const ZkConnPtr& conn);      // the connection breaks for both sides

  // ---- faults
  void stall(int from, int to, bool stalled);  // messages wait, in order
  void stop(int server);                       // SIGSTOP
  void resume(int server);
  void restart(int server);  // kills the server, which starts again later
  void heal();
  void reap();

  // ---- actions of an operator, through the leader; without a leader they do nothing
  void remove(const std::string& path);
  void end_session(std::int64_t session);

  // ---- the committed state
  const zk::FakeZkTree& truth() const { return servers_[truth_].tree; }
  // Whether servers with the same zxid have the same nodes. If not, the simulation has a bug.
  bool agree() const;
  int leader() const;  // the leader of the newest epoch; -1: there is none
  // The world time before which the leader does not end the session. kNever: there is no leader.
  // Zero: the leader does not know the session.
  Time counted_until(std::int64_t session) const;
  const Setup& setup() const { return setup_; }
  std::size_t watches() const;
  std::uint64_t told() const { return told_; }  // watches that fired
  std::size_t sessions() const;
  // Whether an operator ended the session of the entry with this token.
  bool forced(std::uint64_t token) const { return forced_tokens_.contains(token); }
  bool stopped(int server) const { return servers_[server].stopped; }
  void preset(const std::string& directory, std::int32_t next_number);

 private:
  struct Txn {
    enum class Kind { request, open, close, refuse } kind = Kind::request;
    std::uint64_t zxid = 0;
    std::int64_t session = 0;
    zk::Request request{};
    int code = 0;  // error code of a refusal
    int server = 0;
    std::uint64_t conn = 0;
    std::uint64_t number = 0;
  };
  using TxnPtr = std::shared_ptr<const Txn>;
  struct Count {
    Time expires{};  // by the leader's clock
    int owner = 0;
    bool closing = false;
  };
  struct Proposal {
    TxnPtr txn;
    std::set<int> acks;
    std::vector<Task> after;  // sync requests that wait for it
  };
  enum class Role { looking, following, leading };
  struct Server {
    explicit Server(SimClock own) : clock(own) {}
    SimClock clock;
    Role role = Role::looking;
    bool stopped = false;
    bool down = false;
    std::uint64_t life = 0;   // counts changes of role; messages for an earlier role are dropped
    std::uint64_t epoch = 0;  // epoch of its leader, or its own epoch as leader
    int leader = -1;
    std::vector<TxnPtr> log;
    std::size_t applied = 0;  // number of log entries that are applied
    zk::FakeZkTree tree;
    std::set<std::int64_t> closed;  // closed sessions
    std::map<std::uint64_t, ZkConnPtr> conns;
    std::set<std::int64_t> touched;           // sessions with messages since the last ping
    Time heard{};                             // last ping of its leader
    std::deque<std::pair<Time, Task>> turns;  // confirmed changes that are not applied yet
    std::deque<Task> inbox;                   // messages that arrived while it was stopped
    // Only for a leader:
    std::map<std::int64_t, Count> counts;
    std::deque<Proposal> proposals;
    std::uint64_t next_zxid = 0;
    std::array<Time, kServers> answered{};  // last answer to a ping, by server
    Time began{};
  };
  struct Link {
    bool stalled = false;
    std::deque<std::pair<Time, Task>> queue;
  };

  // zk_ensemble.cpp: requests
  void touch(int server, std::int64_t session);
  void advance(Server& server, ZkConn& conn);
  void forward(int server, const ZkConnPtr& conn, const ZkConn::Asked& asked);
  void lead_request(int leader, const Txn& txn);
  void lead_sync(int leader, int server, std::uint64_t conn, std::uint64_t number);
  void answer(int server, std::uint64_t conn, std::uint64_t number, zk::Reply reply);
  void accept(int server, const ZkConnPtr& conn, std::int64_t session, const ZkHello& hello);
  void revalidate(int server, const ZkConnPtr& conn, const ZkHello& hello);
  void hang_up(const ZkConnPtr& conn);
  void tell(Server& server, zk::NodeEvent news, const std::string& path);

  // zk_ensemble_log.cpp: the log and elections. zk_ensemble_sessions.cpp: session times and ticks.
  // zk_ensemble_faults.cpp: faults and actions of an operator.
  void propose(int leader, Txn txn);
  void acked(int leader, int by, std::uint64_t zxid);
  void apply_to(int server, std::size_t count);
  void apply(int server, const Txn& txn);
  void send(int from, int to, Task task);  // dropped if either server changes its role first
  void pump(int from, int to);
  void at_server(int server, Task task);
  void in_turn(int server, Task task);
  void count_anew(int leader, std::int64_t session);
  void half_tick(int leader, std::uint64_t life);
  void full_tick(int leader, std::uint64_t life);
  void watch_leader(int follower, std::uint64_t life);
  void look(int server);
  void elect();
  void elect_soon();
  void follow(int server, int leader);
  bool connected(int a, int b) const;
  bool follows(int server, int leader) const;

  World& world_;
  const Setup setup_;
  std::deque<Server> servers_;
  std::array<std::array<Link, kServers>, kServers> links_;
  int truth_ = 0;
  std::uint64_t epoch_ = 0;
  std::uint64_t next_conn_ = 1;
  std::uint64_t next_number_ = 1;
  std::int64_t next_session_ = 0x1000;
  std::uint64_t told_ = 0;
  bool electing_ = false;
  std::set<std::int64_t> forced_sessions_;
  std::set<std::uint64_t> forced_tokens_;
  bool healed_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace baton::sim
