// The servers of a run of chaos, and what they hold: the same calls for each store.
#pragma once

#include "support/server_links.h"

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
// at ZkEnsemble and EtcdCluster. From any thread.
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
  virtual int size() const = 0;
  virtual std::vector<std::uint16_t> ports() const = 0;
  virtual void kill(int i) = 0;
  virtual void start(int i, bool wait) = 0;
  virtual void pause(int i) = 0;
  virtual void resume(int i) = 0;
  virtual int leader() = 0;
  virtual int leader_after(int old) = 0;
  virtual bool serving(int i) = 0;
  virtual void wait_synced() = 0;
  virtual test::ServerLink link(int a, int b) const = 0;
  virtual void isolate(int i) const = 0;
  virtual void heal_all() const = 0;
  virtual std::string tails() const = 0;

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

// Forwards to the servers of tests/support.
template <class Servers>
class ClusterOf : public Cluster {
 public:
  int size() const override { return servers_->size(); }
  std::vector<std::uint16_t> ports() const override {
    std::vector<std::uint16_t> all;
    for (int i = 0; i < size(); ++i) all.push_back(servers_->client_port(i));
    return all;
  }
  void kill(int i) override { servers_->kill(i); }
  void start(int i, bool wait) override { servers_->start(i, wait); }
  void pause(int i) override { servers_->pause(i); }
  void resume(int i) override { servers_->resume(i); }
  int leader() override { return servers_->leader(); }
  int leader_after(int old) override { return servers_->leader_after(old); }
  bool serving(int i) override { return servers_->serving(i); }
  void wait_synced() override { servers_->wait_synced(); }
  test::ServerLink link(int a, int b) const override { return servers_->link(a, b); }
  void isolate(int i) const override { servers_->isolate(i); }
  void heal_all() const override { servers_->heal_all(); }
  std::string tails() const override { return servers_->tails(); }

 protected:
  explicit ClusterOf(std::unique_ptr<Servers> servers) : servers_(std::move(servers)) {}
  std::unique_ptr<Servers> servers_;
};

// "chaos17" somewhere in an entry's data: client 17. 0: nobody of ours.
std::uint32_t client_in(const std::string& data);

}  // namespace baton::chaos
