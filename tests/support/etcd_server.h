// Real etcd servers as child processes, for one test.
#pragma once

#include "support/certificates.h"
#include "support/etcd_links.h"
#include "support/etcd_store.h"
#include "support/run.h"
#include "support/server_cluster.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace baton::test {

// Settings that are not listed here are etcd's defaults, with two exceptions. The servers do not
// fsync: only a machine without power loses data by that, not a killed server. Passwords are quick
// to check.
struct EtcdOptions {
  int servers = 1;  // or 3
  std::chrono::milliseconds heartbeat{100};
  // A follower that receives nothing from its leader for one to two times this period starts an
  // election. A leader that does not reach a majority for this period steps down.
  std::chrono::milliseconds election{1000};
  bool peer_proxies = false;  // required for link() and isolate()
  // Clients must use TLS. (The servers do not use TLS among each other, and this class sends its
  // own requests to another port of each server.)
  bool tls = false;
  bool client_certs = false;  // clients must also show a certificate
  ServerCertificate server_certificate = ServerCertificate::kGood;
  std::shared_ptr<const TestCertificates> certificates;  // null: made if needed
  // More flags, such as "--max-txn-ops=16"; the last one of a name counts.
  std::vector<std::string> flags;
};

// The servers that BATON_TEST_ETCD names ("h:p,h:p"). They run already, and tests must not kill
// them.
std::optional<std::string> etcd_from_environment();

// Whether the program etcd exists: the program that BATON_TEST_ETCD_BIN names, or else the first
// one in PATH (package etcd-server). If it does not exist, tests skip.
bool etcd_installed();

// The program etcdctl (BATON_TEST_ETCDCTL_BIN, or package etcd-client), with API 3, for these
// endpoints ("127.0.0.1:2379,..."). It gives up after 5 s without an answer.
bool etcdctl_installed();
Finished etcdctl(const std::string& endpoints, const std::vector<std::string>& arguments);

// A cluster of real servers. The calls of EtcdStore ask the servers that are neither down nor
// paused.
class EtcdCluster final : public EtcdStore, public ServerCluster {
 public:
  explicit EtcdCluster(EtcdOptions options = {});

  const EtcdOptions& options() const noexcept { return options_; }

  // Kills the only server and starts it with an empty directory on the same port. It has the same
  // cluster id, as if it was set back, or with `another_cluster` a new cluster id.
  void wipe(bool another_cluster);
  // nullopt: no answer within two seconds, for example because the server is paused.
  std::optional<EtcdStatus> status(int i) const;
  // Whether the server answers a linearizable read within a second.
  bool serving(int i) override;
  // Makes this server the leader, without a fault. Returns when it leads.
  void make_leader(int i);

  // ---- What servers count ----
  //
  // Counters since the start of a server. The calls of EtcdStore count, too. So a test reads the
  // counters before and after the calls that it wants to count, and makes no other call in between.
  // Reading the counters does not count.

  // The sum of all series with at least these labels, `name{label="x",other="y"}`. -1: no answer,
  // or no such series.
  double metric(int i, const std::string& which) const;
  // The number of calls that have begun, by service and method: "KV" and "Range" or "Txn", "Lease"
  // and "LeaseGrant", "Watch" and "Watch". unary_calls() is -1 for a stream, and streams() is -1
  // for a unary call.
  std::int64_t unary_calls(int i, const std::string& service, const std::string& method) const;
  std::int64_t streams(int i, const std::string& service, const std::string& method) const;
  // The streams that have not ended.
  std::int64_t open_streams(int i, const std::string& service, const std::string& method) const;
  // The messages from clients and to clients, in unary calls and in streams.
  std::int64_t messages_received(int i, const std::string& service,
                                 const std::string& method) const;
  std::int64_t messages_sent(int i, const std::string& service, const std::string& method) const;
  // The number of watches in all streams.
  std::int64_t watchers(int i) const;

  // A hash of the server's data: equal at servers that have applied the same changes.
  std::uint64_t hash(int i) { return EtcdStore::hash(ask_host(i)); }
  // Frees the space in the file that compact() left. The server answers no request meanwhile.
  void defragment(int i) { EtcdStore::defragment(ask_host(i)); }
  // Runs etcdctl with the client certificate if there is TLS, and without a user. For a user add
  // "--user=root:...".
  Finished etcdctl(int i, const std::vector<std::string>& arguments) const;
  // With all servers as endpoints.
  Finished etcdctl(const std::vector<std::string>& arguments) const;
  // Call this only with TLS.
  const TestCertificates& certificates() const { return *options_.certificates; }

 private:
  // kPlain: for the requests of this class when clients use TLS.
  enum Port : std::size_t { kPeer, kMetrics, kPlain };

  void prepare() override;
  void started(int i) override;
  std::vector<std::string> command(int i) const;
  std::uint16_t port(int i, Port which) const { return at(i).ports[which].port(); }
  std::string ask_host(int i) const;  // the address for the requests of this class
  std::vector<std::string> awake_hosts() const;
  Finished etcdctl_at(const std::string& endpoints,
                      const std::vector<std::string>& arguments) const;
  std::optional<int> find_leader(int except) const override;
  bool follows(int i) const override;
  bool all_synced() const override;
  const ServerLinks* links() const override { return links_.get(); }
  double counter(int i, const std::string& name, const std::string& service,
                 const std::string& method, const std::string& more = "") const;

  EtcdOptions options_;               // constant after the constructor
  std::unique_ptr<EtcdLinks> links_;  // uses the processes, so it is destroyed before them
  int generation_ = 0;                // counts the cluster ids that wipe() has made
};

}  // namespace baton::test
