// The servers of a chaos run and their content, with the same calls for each store.
#pragma once

#include "support/server_cluster.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace baton::chaos {

inline constexpr std::chrono::milliseconds kSession{2'000};  // session timeout of all clients

// One entry in the queue of a lock.
struct InLine {
  std::uint32_t lock = 0;
  std::uint64_t token = 0;
  std::uint32_t client = 0;  // 0: not known
  std::string where;         // path of the node, or key
  std::int64_t session = 0;  // id of the ZooKeeper session, or of the etcd lease, that owns the
                             // entry
};

// A node or key that a program other than baton has created in the directory of a lock.
class Guest {
 public:
  // Removes it: at once, or when its session ends if no server answers.
  virtual ~Guest() = default;
  virtual const std::string& where() const = 0;  // InLine::where
  virtual bool there() = 0;                      // true: it still exists; throws as leave() does
  // Removes it. Returns true if it is gone. Throws if servers fail meanwhile.
  virtual bool leave() = 0;
};

// A server that has lost committed data, or still has data that was removed.
struct Stray {
  int server = 0;
  std::chrono::nanoseconds since{};  // earliest possible time of the loss; boot clock
};

// Three servers with proxies between them. Servers are numbered from 0. ServerCluster describes the
// calls that are forwarded to it. All calls may come from any thread.
class Cluster {
 public:
  virtual ~Cluster() = default;

  // The root of all locks. It is set before a run.
  const std::string& root() const noexcept { return root_; }
  void use_root(std::string root) { root_ = std::move(root); }

  virtual std::string scheme() const = 0;
  virtual std::string version() const = 0;  // "zk 3.8.0", "etcd 3.4.23"
  // The URL for clients that connect to these ports, of servers or of proxies.
  std::string url(const std::vector<std::uint16_t>& ports) const;
  int size() const { return servers().size(); }
  std::vector<std::uint16_t> ports() const;
  void kill(int i) { servers().kill(i); }
  void start(int i, bool wait) { servers().start(i, wait); }
  void pause(int i) { servers().pause(i); }
  void resume(int i) { servers().resume(i); }
  int leader() { return servers().leader(); }
  int leader_after(int old) { return servers().leader_after(old); }
  bool serving(int i) { return servers().serving(i); }
  void wait_synced() { servers().wait_synced(); }
  test::ServerLink link(int a, int b) const { return servers().link(a, b); }
  void isolate(int i) const { servers().isolate(i); }
  void heal_all() const { servers().heal_all(); }
  std::string tails() const { return servers().tails(); }

  // All entries in the queues of the first `locks` locks, each lock in the order of its queue. The
  // majority had this state at some moment during the call, never before it. Throws if it cannot
  // read that state.
  virtual std::vector<InLine> in_line(int locks) = 0;
  // The actions of operators. They return false if the object was not there, and may throw if
  // servers fail meanwhile.
  virtual bool remove(const InLine& entry) = 0;
  virtual bool remove_directory(std::uint32_t lock) = 0;  // only when it is empty
  virtual bool end_session(const InLine& entry) = 0;
  // The names of other libraries whose entries share the queues of this store.
  virtual std::vector<std::string> peers() const = 0;
  // Joins the queue as that library does. Throws if the directory does not exist yet.
  virtual std::unique_ptr<Guest> peer_joins(std::uint32_t lock, const std::string& peer) = 0;
  // Creates a node or key in the directory of the lock that is not an entry.
  virtual std::unique_ptr<Guest> no_entry(std::uint32_t lock) = 0;
  // Returns a server that has lost data, if the servers themselves have noticed one by now. One
  // thread must call this repeatedly.
  virtual std::optional<Stray> stray() { return std::nullopt; }
  // Deletes the data of the server, and returns when the server has received the data of the
  // others. All servers must run.
  virtual void rebuild(int i);
  // How many leases this server has ended since its start because they expired. nullopt: this store
  // does not count them. Throws if the server does not answer.
  virtual std::optional<std::uint64_t> expired_leases(int) { return std::nullopt; }
  // What is in the store although all clients are closed.
  virtual std::vector<std::string> leftovers() = 0;

 private:
  virtual test::ServerCluster& servers() const = 0;

  std::string root_ = "/chaos";
};

std::unique_ptr<Cluster> make_zk_cluster();
// Maintenance calls that only etcd has.
class EtcdUpkeep {
 public:
  virtual ~EtcdUpkeep() = default;
  virtual void compact() = 0;
  virtual void defragment(int i) = 0;
};
std::unique_ptr<Cluster> make_etcd_cluster();

// Returns 17 if the data of an entry contains "chaos17", and 0 if no client of the run wrote it.
std::uint32_t client_in(const std::string& data);

}  // namespace baton::chaos
