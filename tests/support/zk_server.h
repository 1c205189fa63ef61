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

// Settings that are not listed here are ZooKeeper's defaults, with these exceptions. There is no
// admin server. All four-letter words are allowed, and any number of connections from one address.
// The servers do not fsync: only a machine without power loses data by that, not a killed server.
// Elections are faster, because with the defaults some take ten ticks longer: a server that looks
// for a leader asks at least every 1.6 s (default: up to every 60 s), and an elected leader without
// followers gives up after 2 s (default: init_limit ticks).
struct ZkOptions {
  int servers = 1;  // 1: standalone; or 3
  std::chrono::milliseconds tick{2000};
  int init_limit = 10;  // ticks
  int sync_limit = 5;   // ticks; a follower that receives nothing for this time leaves its leader
  std::chrono::milliseconds min_session{0};  // 0: the default, 2 ticks
  std::chrono::milliseconds max_session{0};  // 0: the default, 20 ticks
  // More configuration lines; the last one of a name counts.
  std::vector<std::string> config;
  std::vector<std::string> jvm;  // more arguments, such as "-Dzookeeper.skipACL=yes"
  bool peer_proxies = false;     // required for link() and isolate()
};

// The servers that BATON_TEST_ZK names ("h:p,h:p"). They run already, and tests must not kill them.
std::optional<std::string> zk_from_environment();

// Whether Java and ZooKeeper exist (packages default-jre-headless and zookeeper, or other jars that
// BATON_TEST_ZK_CLASSPATH names). If they do not exist, tests skip.
bool zk_installed();

class ZkEnsemble final : public ServerCluster {
 public:
  explicit ZkEnsemble(ZkOptions options = {});

  const ZkOptions& options() const noexcept { return options_; }

  // ---- Processes ----

  using ServerCluster::start;
  // Calls start(), and keeps clients that connect through this proxy away until the server serves.
  // A standalone 3.8.0 server that is starting may accept a connection and then neither answer nor
  // close it (a NullPointerException in ZooKeeperServer.removeCnxn). The C client leaves such a
  // connection only after two thirds of the session timeout, when all holds are lost.
  void start(int i, Proxy& door);
  // Starts the server again with an empty disk. Returns when it has the data of the other servers.
  // All servers must be up.
  void rebuild(int i);
  bool serving(int i) override;  // it answers and serves clients

  // ---- The state that servers report ----

  std::string version() const;  // "3.8.0"
  // Empty: no answer within two seconds, for example because the server is paused.
  std::string four_letter(int i, const std::string& word) const;
  std::map<std::string, std::string> mntr(int i) const {
    return parse_mntr(four_letter(i, "mntr"));
  }
  // A number of mntr, such as "zk_znode_count". -1: no answer or no such name.
  std::int64_t number(int i, const std::string& name) const;
  // Counts the requests of these functions, too.
  std::int64_t packets_received(int i) const { return number(i, "zk_packets_received"); }
  // Includes watches on children.
  std::int64_t watch_count(int i) const { return number(i, "zk_watch_count"); }
  // Does not include watches on children, because ZooKeeper does not list them. Also empty without
  // an answer.
  std::map<std::string, std::set<std::int64_t>> watches(int i) const;
  std::vector<ZkConnection> connections(int i) const { return parse_cons(four_letter(i, "cons")); }
  // The server that has a connection of this session.
  std::optional<int> server_of(std::int64_t session) const;

  // ---- Sessions, as the leader sees them ----
  //
  // An isolated leader that does not know it yet counts as the leader, so call leader_after()
  // first.

  std::set<std::int64_t> sessions();
  bool session_exists(std::int64_t session);
  // Waits until the leader has ended the session and removed its nodes. The followers do so later:
  // wait_synced().
  ::testing::AssertionResult wait_session_gone(
      std::int64_t session, std::chrono::milliseconds limit = std::chrono::seconds(30));
  // Ends the session now, without its client, and returns when it is gone. If possible, this is
  // done at another server than the client's server. Then the client loses its connection when the
  // session ends, and learns of the end when it connects again. With a single server it may take
  // the client two thirds of its session timeout to notice. To let a session expire in the normal
  // way, keep its client away (Proxy) and call wait_session_gone().
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
