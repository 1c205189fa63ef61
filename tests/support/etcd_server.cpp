#include "support/etcd_server.h"

#include "support/http.h"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace baton::test {
namespace {

// The value of an environment variable. An empty value counts as not set.
std::optional<std::string> named(const char* variable) {
  const char* given = std::getenv(variable);
  if (given == nullptr || *given == '\0') return std::nullopt;
  return given;
}

}  // namespace

std::optional<std::string> etcd_from_environment() { return named("BATON_TEST_ETCD"); }

// If the environment names a program that does not exist, tests fail. They must not skip.
bool etcd_installed() { return named("BATON_TEST_ETCD_BIN") || in_path("etcd"); }
bool etcdctl_installed() { return named("BATON_TEST_ETCDCTL_BIN") || in_path("etcdctl"); }

Finished etcdctl(const std::string& endpoints, const std::vector<std::string>& arguments) {
  std::vector<std::string> words{named("BATON_TEST_ETCDCTL_BIN").value_or("etcdctl"),
                                 "--endpoints=" + endpoints};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run(std::move(words), {"ETCDCTL_API=3"});
}

EtcdCluster::EtcdCluster(EtcdOptions options)
    : EtcdStore([this] { return awake_hosts(); }),
      ServerCluster("etcd", options.servers, 3),
      options_(std::move(options)) {
  if (options_.tls && !options_.certificates) {
    options_.certificates = std::make_shared<TestCertificates>();
  }
  start_all();
}

void EtcdCluster::prepare() {
  links_.reset();
  new_servers();
  std::vector<std::uint16_t> ports;
  ports.reserve(static_cast<std::size_t>(size()));
  for (int i = 0; i < size(); ++i) ports.push_back(port(i, kPeer));
  if (options_.peer_proxies) links_ = std::make_unique<EtcdLinks>(ports);
  for (int i = 0; i < size(); ++i) {
    at(i).process = std::make_unique<ServerProcess>(command(i), at(i).dir / "log");
  }
  if (links_) links_->open([this](int i) { return pid(i); });
}

// A new server asks its peers for the members. A peer that listens but does not answer yet, because
// it asks its own peers, delays the new server by a second.
void EtcdCluster::started(int i) {
  wait_for("server " + std::to_string(i) + " to answer its peers", [&] {
    check_running(i);
    return http(local_host(port(i, kPeer)), {"/version", "", {}}).has_value();
  });
}

std::vector<std::string> EtcdCluster::command(int i) const {
  const Server& server = at(i);
  const auto url = [](std::uint16_t port) { return "http://" + local_host(port); };
  const auto advertised = [&](int j) { return links_ ? links_->entry(j) : port(j, kPeer); };
  std::string all;
  for (int j = 0; j < size(); ++j) {
    all += (j > 0 ? ",n" : "n") + std::to_string(j) + "=" + url(advertised(j));
  }
  const std::string clients = options_.tls ? "https://" + host(i) : url(server.client.port());
  const std::string ours = options_.tls ? "," + url(port(i, kPlain)) : "";
  std::vector<std::string> words{
      named("BATON_TEST_ETCD_BIN").value_or("etcd"), "--name=n" + std::to_string(i),
      "--data-dir=" + (server.dir / "data"), "--listen-client-urls=" + clients + ours,
      "--advertise-client-urls=" + clients, "--listen-peer-urls=" + url(port(i, kPeer)),
      "--initial-advertise-peer-urls=" + url(advertised(i)), "--initial-cluster=" + all,
      "--listen-metrics-urls=" + url(port(i, kMetrics)),
      // The token keeps out the servers of another cluster that used one of these ports before.
      "--initial-cluster-token=" + at(0).dir.path() + "-" + std::to_string(generation_),
      "--heartbeat-interval=" + std::to_string(options_.heartbeat.count()),
      "--election-timeout=" + std::to_string(options_.election.count()),
      // Not listed by --help, but available since 3.4.10.
      "--unsafe-no-fsync", "--bcrypt-cost=4", "--logger=zap", "--log-outputs=stderr"};
  if (options_.tls) {
    const auto own = certificates().server(options_.server_certificate);
    words.insert(words.end(), {"--cert-file=" + own.certificate, "--key-file=" + own.key});
  }
  if (options_.client_certs) {
    words.insert(words.end(), {"--client-cert-auth", "--trusted-ca-file=" + certificates().ca()});
  }
  words.insert(words.end(), options_.flags.begin(), options_.flags.end());
  return words;
}

std::string EtcdCluster::ask_host(int i) const {
  return options_.tls ? local_host(port(i, kPlain)) : host(i);
}

Finished EtcdCluster::etcdctl_at(const std::string& endpoints,
                                 const std::vector<std::string>& arguments) const {
  std::vector<std::string> all;
  if (options_.tls) {
    const auto own = certificates().client();
    all = {"--cacert=" + certificates().ca(), "--cert=" + own.certificate, "--key=" + own.key};
  }
  all.insert(all.end(), arguments.begin(), arguments.end());
  return test::etcdctl(endpoints, all);
}

Finished EtcdCluster::etcdctl(int i, const std::vector<std::string>& arguments) const {
  return etcdctl_at(host(i), arguments);
}

Finished EtcdCluster::etcdctl(const std::vector<std::string>& arguments) const {
  return etcdctl_at(hosts(), arguments);
}

void EtcdCluster::wipe(bool another_cluster) {
  if (size() != 1 || links_) throw std::invalid_argument("EtcdCluster: wipe one server");
  kill(0);
  std::filesystem::remove_all(at(0).dir / "data");
  generation_ += another_cluster ? 1 : 0;
  at(0).process = std::make_unique<ServerProcess>(command(0), at(0).dir / "log");
  start(0);
}

}  // namespace baton::test
