// The base of all clusters of real servers: the server processes and the waiting for them.
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

// The constructor of a derived class starts the servers. It returns when all servers serve clients
// and agree on a leader. If they do not within 60 s, it throws std::runtime_error with the ends of
// the logs. The destructor kills the servers and removes their directories. If the test process is
// killed, the kernel kills the servers, but their directories stay.
//
// Servers are numbered from 0. Any thread may make any call. Calls that wait throw as the
// constructor does.
class ServerCluster {
 public:
  ServerCluster(const ServerCluster&) = delete;
  ServerCluster& operator=(const ServerCluster&) = delete;

  int size() const noexcept { return size_; }
  std::uint16_t client_port(int i) const { return at(i).client.port(); }
  std::string host(int i) const;  // "127.0.0.1:p1"
  std::string hosts() const;      // "127.0.0.1:p1,127.0.0.1:p2"
  // How long the constructor took from the start of the first process until all servers served.
  std::chrono::milliseconds start_time() const noexcept { return start_time_; }

  // ---- Processes ----

  void kill(int i) { at(i).process->kill(); }  // SIGKILL; returns when the process is gone
  // Starts the server with the same directory and ports, and returns when it serves clients. With
  // `wait` false it returns at once: use this for the first of several servers that have no
  // majority without each other.
  void start(int i, bool wait = true);
  void restart(int i);  // kill() and start()
  // Sends SIGSTOP and returns when the server is stopped. The kernel still accepts connections for
  // it.
  void pause(int i) { at(i).process->pause(); }
  void resume(int i) { at(i).process->resume(); }                 // SIGCONT
  bool running(int i) const { return at(i).process->running(); }  // also if paused
  pid_t pid(int i) const { return at(i).process->pid(); }         // -1: not running

  // ---- Roles ----

  // Waits until a server that is neither down nor paused reports that it leads (a standalone server
  // does). If two servers report it, returns the one that was elected later.
  int leader() { return leader_after(-1); }
  // The same, but never returns `old`, which may be paused or isolated and not know that it has
  // lost the leadership.
  int leader_after(int old);
  int a_follower();
  virtual bool serving(int i) = 0;  // it serves clients; see the derived class
  void wait_serving(int i);         // until the server serves
  // Waits until all servers that are neither down nor paused follow one leader and have applied the
  // leader's changes.
  void wait_synced();

  // ---- Network between servers; needs peer_proxies ----

  ServerLink link(int a, int b) const { return network().link(a, b); }
  // No packet arrives between this server and the others any more. No connection is closed.
  void isolate(int i) const;
  void heal_all() const { network().heal_all(); }

  // ---- When a test fails ----

  const std::string& log(int i) const { return at(i).process->log(); }
  std::string tails() const;  // the ends of all logs

 protected:
  struct Server {
    TempDir dir;
    PortLease client;
    std::vector<PortLease> ports;  // more ports; the derived class decides their use
    std::unique_ptr<ServerProcess> process;
  };

  // program: the name for messages. ports: the number of ports of each server, besides the port for
  // clients.
  ServerCluster(const char* program, int servers, std::size_t ports);
  virtual ~ServerCluster() = default;

  // The constructor of the derived class calls this. It starts the servers as described above. If
  // another process has taken a port, it starts again with other ports.
  void start_all();
  // Creates new directories and ports.
  void new_servers();
  Server& at(int i) const { return *servers_.at(static_cast<std::size_t>(i)); }
  bool awake(int i) const { return running(i) && !at(i).process->paused(); }
  // Throws if the server has ended or could not listen.
  void check_running(int i) const;
  void wait_for(const std::string& what, const std::function<bool()>& predicate) const;

  // Calls new_servers() and creates a process for each server, without starting it.
  virtual void prepare() = 0;
  virtual void started(int) {}  // start_all() calls it after each start, before the next one
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
