// Real ZooKeeper servers as child processes, for one test.
#pragma once

#include "support/proxy.h"
#include "support/server_cluster.h"
#include "support/zk_ask.h"
#include "support/zk_links.h"

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

class ZkEnsemble final : public ServerCluster {
 public:
  explicit ZkEnsemble(ZkOptions options = {});

  const ZkOptions& options() const noexcept { return options_; }

  // ---- Processes ----

  using ServerCluster::start;
  // start(), and keeps clients that come through this proxy away until the server serves. A
  // standalone 3.8.0 that is starting may accept a connection and neither answer nor close it (a
  // NullPointerException in ZooKeeperServer.removeCnxn). The C client leaves such a connection only
  // after two thirds of the session timeout, when all holds are lost.
  void start(int i, Proxy& door);
  // Starts again with an empty disk, and returns when it has what the others have. All must be up.
  void rebuild(int i);
  bool serving(int i) override;  // answers, and takes clients

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

 private:
  enum Port : std::size_t { kQuorum, kElection };
  struct Role {
    std::string mode;  // leader, follower, standalone
    std::uint64_t zxid = 0;
  };

  void prepare() override;
  void configure(int i) const;
  std::vector<std::string> command(int i) const;
  std::uint16_t port(int i, Port which) const { return at(i).ports[which].port(); }
  std::optional<Role> role(int i) const;
  std::optional<int> find_leader(int except) const override;
  bool follows(int i) const override;
  bool all_synced() const override;
  const ServerLinks* links() const override { return links_.get(); }
  ZkDump dump();

  const ZkOptions options_;
  std::unique_ptr<ZkLinks> links_;
};

}  // namespace baton::test
