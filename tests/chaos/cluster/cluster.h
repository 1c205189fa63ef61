// The servers of a run of chaos, and what they hold: the same calls for each store.
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

inline constexpr std::chrono::milliseconds kSession{2'000};  // of all clients

// One place in the queue of a lock.
struct InLine {
  std::uint32_t lock = 0;
  std::uint64_t token = 0;
  std::uint32_t client = 0;  // 0: not known
  std::string where;         // path of the node, or the key
  std::int64_t session = 0;  // that it goes with: of ZooKeeper, or the lease
};

// What a program that is no client of ours has put beside a lock's entries.
class Guest {
 public:
  // It goes: at once, or with its session if no server answers.
  virtual ~Guest() = default;
  virtual const std::string& where() const = 0;  // InLine::where
  virtual bool there() = 0;                      // throws as leave() does
  // True: it is gone. Throws if servers fail meanwhile.
  virtual bool leave() = 0;
};

// A server that has not all that was committed, or has what was removed.
struct Stray {
  int server = 0;
  std::chrono::nanoseconds since{};  // not before this; boot clock
};

// Three servers with proxies between them. Servers are numbered from 0; what the calls do is said
// at ServerCluster. From any thread.
class Cluster {
 public:
  virtual ~Cluster() = default;

  // Below which the locks are. Set before a run.
  const std::string& root() const noexcept { return root_; }
  void use_root(std::string root) { root_ = std::move(root); }

  virtual std::string scheme() const = 0;
  virtual std::string version() const = 0;  // "zk 3.8.0", "etcd 3.4.23"
  // What clients connect to, if these are the servers, or ways to them.
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

  // Everybody in line for these locks, each lock in the order of its queue; as the majority knew it
  // at some moment of the call, never before. Throws if it does not get to know.
  virtual std::vector<InLine> in_line(int locks) = 0;
  // What operators do. False: it was not there. They may throw if servers fail meanwhile.
  virtual bool remove(const InLine& entry) = 0;
  virtual bool remove_directory(std::uint32_t lock) = 0;  // when it is empty
  virtual bool end_session(const InLine& entry) = 0;
  // Other libraries that share the queues of this store.
  virtual std::vector<std::string> peers() const = 0;
  // Takes the next place in line, as that library does. Throws if there is no such directory yet.
  virtual std::unique_ptr<Guest> peer_joins(std::uint32_t lock, const std::string& peer) = 0;
  // Lies where the entries lie, and is none.
  virtual std::unique_ptr<Guest> no_entry(std::uint32_t lock) = 0;
  // One, if the servers have noticed it themselves by now. One thread calls, again and again.
  virtual std::optional<Stray> stray() { return std::nullopt; }
  // Throws away what the server has, and returns when it has what the others have. All must be up.
  virtual void rebuild(int i);
  // How many leases this server has ended because their time was up, since it was started; nullopt:
  // this store does not say. Throws if the server does not answer.
  virtual std::optional<std::uint64_t> expired_leases(int) { return std::nullopt; }
  // What is in the store that should not be when all clients are closed.
  virtual std::vector<std::string> leftovers() = 0;

 private:
  virtual test::ServerCluster& servers() const = 0;

  std::string root_ = "/chaos";
};

std::unique_ptr<Cluster> make_zk_cluster();
// What only etcd has done to it.
class EtcdUpkeep {
 public:
  virtual ~EtcdUpkeep() = default;
  virtual void compact() = 0;
  virtual void defragment(int i) = 0;
};
std::unique_ptr<Cluster> make_etcd_cluster();

// "chaos17" somewhere in an entry's data: client 17. 0: nobody of ours.
std::uint32_t client_in(const std::string& data);

}  // namespace baton::chaos
