// What all clusters of real servers have in common: their processes, and waiting for them.
#pragma once

#include "support/ports.h"
#include "support/server_links.h"
#include "support/server_process.h"
#include "support/temp_dir.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace baton::test {

// Servers are started by the constructors of derived classes, which return when all serve clients
// and agree on a leader, and throw std::runtime_error with the ends of the logs if they do not
// within 60 s. Servers are killed and their directories removed at the latest by the destructor;
// when the test process is killed, the kernel kills the servers, and their directories stay.
//
// Servers are numbered from 0. All calls from any thread. Waiting calls throw like the constructor.
class ServerCluster {
 public:
  ServerCluster(const ServerCluster&) = delete;
  ServerCluster& operator=(const ServerCluster&) = delete;

  int size() const noexcept { return size_; }
  std::uint16_t client_port(int i) const { return at(i).client.port(); }
  std::string host(int i) const;  // "127.0.0.1:p1"
  std::string hosts() const;      // "127.0.0.1:p1,127.0.0.1:p2"
  // From the start of the first process to serving, of the constructor.
  std::chrono::milliseconds start_time() const noexcept { return start_time_; }

  // ---- Processes ----

  void kill(int i) { at(i).process->kill(); }  // SIGKILL; returns when it is gone
  // Same directory and ports. Returns when it serves clients; with `wait` false at once, for the
  // first of several without which there is no majority.
  void start(int i, bool wait = true);
  void restart(int i);  // kill() and start()
  // SIGSTOP; returns when it is stopped. Its kernel still accepts connections.
  void pause(int i) { at(i).process->pause(); }
  void resume(int i) { at(i).process->resume(); }                 // SIGCONT
  bool running(int i) const { return at(i).process->running(); }  // paused counts
  pid_t pid(int i) const { return at(i).process->pid(); }         // -1: not running

  // ---- Roles ----

  // Waits until a server that is neither down nor paused says that it leads (one that stands alone
  // does). Of two that say so, the one that was elected later.
  int leader() { return leader_after(-1); }
  // The same for one that is not `old`: after `old` was paused or isolated, and may not know.
  int leader_after(int old);
  int a_follower();
  virtual bool serving(int i) = 0;  // it takes clients; said at each store
  void wait_serving(int i);         // until it does
  // Until all that are neither down nor paused follow one leader and have applied what it has.
  void wait_synced();

  // ---- Network between servers; needs peer_proxies ----

  ServerLink link(int a, int b) const { return network().link(a, b); }
  // No packet between this one and the others arrives any more; nothing is closed.
  void isolate(int i) const;
  void heal_all() const { network().heal_all(); }

  // ---- When a test fails ----

  const std::string& log(int i) const { return at(i).process->log(); }
  std::string tails() const;  // the ends of all logs

 protected:
  struct Server {
    TempDir dir;
    PortLease client;
    std::vector<PortLease> ports;  // more of them, what for is the store's business
    std::unique_ptr<ServerProcess> process;
  };

  // program: for messages. ports: of each server, besides that for clients.
  ServerCluster(const char* program, int servers, std::size_t ports);
  virtual ~ServerCluster() = default;

  // Called by the constructor of the derived class: all that its own says. Starts anew, with other
  // ports, if another process has taken one.
  void start_all();
  // Directories and ports, all new.
  void new_servers();
  Server& at(int i) const { return *servers_.at(static_cast<std::size_t>(i)); }
  bool awake(int i) const { return running(i) && !at(i).process->paused(); }
  // Throws if the server has ended, or could not listen.
  void check_running(int i) const;
  void wait_for(const std::string& what, const std::function<bool()>& predicate) const;

  // new_servers(), and a process for each that is not started.
  virtual void prepare() = 0;
  virtual void started(int) {}  // its process; before the next one is
  virtual std::optional<int> find_leader(int except) const = 0;
  virtual bool follows(int i) const = 0;
  virtual bool all_synced() const = 0;
  virtual const ServerLinks* links() const = 0;  // nullptr: there are no proxies

 private:
  const ServerLinks& network() const;
  void check_ports() const;

  const char* const program_;
  const int size_;
  const std::size_t ports_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::chrono::milliseconds start_time_{0};
};

std::string local_host(std::uint16_t port);  // "127.0.0.1:80"

}  // namespace baton::test
