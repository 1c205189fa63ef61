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

// What is not said here is as etcd comes, but for: no fsync (a killed server loses nothing by that,
// only a machine without power), and passwords that are quick to check.
struct EtcdOptions {
  int servers = 1;  // or 3
  std::chrono::milliseconds heartbeat{100};
  // A follower that hears nothing for this long, or up to twice as long, wants to lead; a leader
  // that hears of no majority for this long gives up.
  std::chrono::milliseconds election{1000};
  bool peer_proxies = false;  // for link(), isolate()
  // Clients come over TLS. (Servers among each other do not, and questions of our own use another
  // port of each server.)
  bool tls = false;
  bool client_certs = false;  // and show a certificate
  ServerCertificate server_certificate = ServerCertificate::kGood;
  std::shared_ptr<const TestCertificates> certificates;  // none: made if needed
  std::vector<std::string> flags;  // more of them, "--max-txn-ops=16"; the last one counts
};

// The servers of BATON_TEST_ETCD ("h:p,h:p") run already, and are not ours to kill.
std::optional<std::string> etcd_from_environment();

// The program etcd is here: the one that BATON_TEST_ETCD_BIN names, or else the first in PATH
// (package etcd-server). Otherwise a test should be skipped.
bool etcd_installed();

// The program etcdctl (BATON_TEST_ETCDCTL_BIN, or package etcd-client), with API 3, asked to talk
// to these endpoints ("127.0.0.1:2379,..."). Without an answer it gives up after 5 s.
bool etcdctl_installed();
Finished etcdctl(const std::string& endpoints, const std::vector<std::string>& arguments);

// What the cluster holds: the calls of EtcdStore, asked of those that are neither down nor paused.
class EtcdCluster final : public EtcdStore, public ServerCluster {
 public:
  explicit EtcdCluster(EtcdOptions options = {});

  const EtcdOptions& options() const noexcept { return options_; }

  // Kills the only server, and starts it with nothing: as the same cluster that was set back, or as
  // another one. Same port.
  void wipe(bool another_cluster);
  // nullopt: no answer within two seconds, as of a paused one.
  std::optional<EtcdStatus> status(int i) const;
  // Takes part: reads what a majority has agreed upon, within a second.
  bool serving(int i) override;
  // Makes this one lead, without a fault; returns when it does.
  void make_leader(int i);

  // ---- What servers count ----
  //
  // Since their start. The calls of EtcdStore count too: read the counters before and after what is
  // to be counted, with nothing of ours in between. Reading them does not count.

  // Sum of the series with at least these labels, `name{label="x",other="y"}`. -1: no answer, or
  // none such.
  double metric(int i, const std::string& which) const;
  // Calls that began: "KV" and "Range", "Txn"; "Lease" and "LeaseGrant"; "Watch" and "Watch" ...
  // unary_calls() is -1 for a stream, streams() is -1 for what is none.
  std::int64_t unary_calls(int i, const std::string& service, const std::string& method) const;
  std::int64_t streams(int i, const std::string& service, const std::string& method) const;
  // Those of them that have not ended.
  std::int64_t open_streams(int i, const std::string& service, const std::string& method) const;
  // From clients and to clients, on calls of both kinds.
  std::int64_t messages_received(int i, const std::string& service,
                                 const std::string& method) const;
  std::int64_t messages_sent(int i, const std::string& service, const std::string& method) const;
  // Watches of all streams.
  std::int64_t watchers(int i) const;

  // Of what it has: the same at servers that are in step.
  std::uint64_t hash(int i) { return EtcdStore::hash(ask_host(i)); }
  // Frees what compact() left in the file. It answers nobody meanwhile.
  void defragment(int i) { EtcdStore::defragment(ask_host(i)); }
  // With the client's certificate if there is TLS, as nobody in particular: add "--user=root:...".
  Finished etcdctl(int i, const std::vector<std::string>& arguments) const;
  Finished etcdctl(const std::vector<std::string>& arguments) const;  // all servers
  // Only with TLS.
  const TestCertificates& certificates() const { return *options_.certificates; }

 private:
  // kPlain: for ourselves when clients have TLS.
  enum Port : std::size_t { kPeer, kMetrics, kPlain };

  void prepare() override;
  void started(int i) override;
  std::vector<std::string> command(int i) const;
  std::uint16_t port(int i, Port which) const { return at(i).ports[which].port(); }
  std::string ask_host(int i) const;  // where it answers us
  std::vector<std::string> awake_hosts() const;
  Finished etcdctl_at(const std::string& endpoints,
                      const std::vector<std::string>& arguments) const;
  std::optional<int> find_leader(int except) const override;
  bool follows(int i) const override;
  bool all_synced() const override;
  const ServerLinks* links() const override { return links_.get(); }
  double counter(int i, const std::string& name, const std::string& service,
                 const std::string& method, const std::string& more = "") const;

  EtcdOptions options_;               // constant once constructed
  std::unique_ptr<EtcdLinks> links_;  // asks for processes: goes before them
  int generation_ = 0;                // of the cluster
};

}  // namespace baton::test
