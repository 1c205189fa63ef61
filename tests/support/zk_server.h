// Real ZooKeeper servers as child processes, for one test.
#pragma once

#include "support/temp_dir.h"
#include "support/zk_ask.h"
#include "support/zk_links.h"
#include "support/ports.h"
#include "support/proxy.h"
#include "support/server_process.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace baton::test {

// What is not said here is as ZooKeeper comes, but for: no admin server, all four letter words, any
// number of connections from one address, and no fsync (a killed server loses nothing by that, only
// a machine without power). And elections, so that they do not now and then take ten ticks longer:
// a server that looks for a leader asks at least every 1.6 s (stock: up to every 60 s), and one
// that was elected but finds no followers, because they chose another, gives up after 2 s (stock:
// init_limit ticks).
struct ZkOptions {
  int servers = 1;  // 1: standalone; or 3
  std::chrono::milliseconds tick{2000};
  int init_limit = 10;  // ticks
  int sync_limit = 5;   // ticks; a follower that hears nothing for so long gives up its leader
  std::chrono::milliseconds min_session{0};  // 0: stock, 2 ticks
  std::chrono::milliseconds max_session{0};  // 0: stock, 20 ticks
  std::vector<std::string> config;           // more lines of the configuration; the last one counts
  std::vector<std::string> jvm;              // more arguments, "-Dzookeeper.skipACL=yes"
  bool peer_proxies = false;                 // for link(), isolate()
};

// The servers of BATON_TEST_ZK ("h:p,h:p") run already, and are not ours to kill.
std::optional<std::string> zk_from_environment();

// Java and ZooKeeper are here (packages default-jre-headless and zookeeper; or other jars named by
// BATON_TEST_ZK_CLASSPATH). Otherwise a test should be skipped.
bool zk_installed();

// Starts the servers, and returns when all serve clients and agree on a leader; throws
// std::runtime_error with the ends of the logs if they do not within 60 s. Servers are killed and
// their directories removed at the latest by the destructor; when the test process is killed, the
// kernel kills the servers, and their directories stay.
//
// Servers are numbered from 0. All calls from any thread. Waiting calls throw like the constructor.
class ZkEnsemble {
 public:
  explicit ZkEnsemble(ZkOptions options = {});
  ~ZkEnsemble();
  ZkEnsemble(const ZkEnsemble&) = delete;
  ZkEnsemble& operator=(const ZkEnsemble&) = delete;

  int size() const noexcept { return options_.servers; }
  const ZkOptions& options() const noexcept { return options_; }
  std::uint16_t client_port(int i) const { return at(i).client.port(); }
  std::string host(int i) const;  // "127.0.0.1:p1"
  std::string hosts() const;      // "127.0.0.1:p1,127.0.0.1:p2"
  // From the start of the first process to serving, of the constructor.
  std::chrono::milliseconds start_time() const noexcept { return start_time_; }

  // ---- Processes ----

  void kill(int i);  // SIGKILL; returns when it is gone
  // Same directory and ports. Returns when it serves clients; with `wait` false at once, for the
  // first of several without which there is no quorum.
  void start(int i, bool wait = true);
  // The same, and keeps clients that come through this proxy away until the server serves. A
  // standalone 3.8.0 that is starting may accept a connection and neither answer nor close it (a
  // NullPointerException in ZooKeeperServer.removeCnxn). The C client leaves such a connection only
  // after two thirds of the session timeout, when all holds are lost.
  void start(int i, Proxy& door);
  void restart(int i);  // kill() and start()
  // Starts again with an empty disk, and returns when it has what the others have. All must be up.
  void rebuild(int i);
  void pause(int i);   // SIGSTOP; returns when it is stopped. Its kernel still accepts connections.
  void resume(int i);  // SIGCONT
  bool running(int i) const { return at(i).process->running(); }  // paused counts
  pid_t pid(int i) const { return at(i).process->pid(); }         // -1: not running

  // ---- Roles ----

  // Waits until a server that is neither down nor paused says that it leads (one that stands alone
  // does). Of two that say so, the one of the later epoch.
  int leader();
  // The same for one that is not `old`: after `old` was paused or isolated, and may not know.
  int leader_after(int old);
  int a_follower();
  bool serving(int i);       // answers, and takes clients
  void wait_serving(int i);  // until it does
  // Until all that are neither down nor paused serve and have applied what the leader has.
  void wait_synced();

  // ---- What servers say ----

  std::string version() const;  // "3.8.0"
  // Empty after two seconds without an answer, as of a paused one.
  std::string four_letter(int i, const std::string& word) const;
  std::map<std::string, std::string> mntr(int i) const {
    return parse_mntr(four_letter(i, "mntr"));
  }
  // A number of mntr ("zk_znode_count"); -1: no answer or no such name.
  std::int64_t number(int i, const std::string& name) const;
  // Also counts each question that is asked here.
  std::int64_t packets_received(int i) const { return number(i, "zk_packets_received"); }
  // Those of children included.
  std::int64_t watch_count(int i) const { return number(i, "zk_watch_count"); }
  // Those of children not included: ZooKeeper does not list them. Also empty without an answer.
  std::map<std::string, std::set<std::int64_t>> watches(int i) const;
  std::vector<ZkConnection> connections(int i) const { return parse_cons(four_letter(i, "cons")); }
  // The server that has a connection of this session.
  std::optional<int> server_of(std::int64_t session) const;

  // ---- Sessions, as the leader sees them ----
  //
  // One that is isolated and does not know it yet counts as leader: leader_after() first.

  std::set<std::int64_t> sessions();
  bool session_exists(std::int64_t session);
  // Until the leader has ended it and removed its nodes. Others follow: wait_synced().
  ::testing::AssertionResult wait_session_gone(
      std::int64_t session, std::chrono::milliseconds limit = std::chrono::seconds(30));
  // Ends it now, against its client's will, and returns when that is done. Done at another server
  // than the client's if there is one: then the client loses its connection with the session, and
  // is told when it connects again. At a single server it may take the client two thirds of its
  // session timeout to notice. For a session that really runs out, keep its client away (Proxy) and
  // wait_session_gone().
  ::testing::AssertionResult end_session(std::int64_t session);

  // ---- Network between servers; needs peer_proxies ----

  ServerLink link(int a, int b) const { return links().link(a, b); }
  // No packet between this one and the others arrives any more; nothing is closed.
  void isolate(int i) const;
  void heal_all() const { links().heal_all(); }

  // ---- When a test fails ----

  const std::string& log(int i) const { return at(i).process->log(); }
  std::string tails() const;  // the ends of all logs

 private:
  struct Server {
    TempDir dir;
    PortLease client;
    PortLease quorum;
    PortLease election;
    std::unique_ptr<ServerProcess> process;
  };
  struct Role {
    std::string mode;  // leader, follower, standalone
    std::uint64_t zxid = 0;
  };

  Server& at(int i) const { return *servers_.at(static_cast<std::size_t>(i)); }
  const ZkLinks& links() const;
  void prepare();
  void configure(int i) const;
  std::vector<std::string> command(int i) const;
  bool awake(int i) const { return running(i) && !at(i).process->paused(); }
  std::optional<Role> role(int i) const;
  std::optional<int> find_leader(int except) const;
  ZkDump dump();
  bool all_synced() const;
  // Throw if a server has ended, or could not listen.
  void check_running(int i) const;
  void check_ports() const;
  template <class Predicate>
  void wait_for(const std::string& what, Predicate predicate) const;

  const ZkOptions options_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::unique_ptr<ZkLinks> links_;
  std::chrono::milliseconds start_time_{0};
};

}  // namespace baton::test
