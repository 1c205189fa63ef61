#include "support/etcd_server.h"

#include "support/boot_clock.h"
#include "support/http.h"

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>

namespace baton::test {
namespace {

// Between questions to a server.
void ask_pause() { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }

std::string loopback(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

// What the environment says; nothing is as if it were not there.
std::optional<std::string> named(const char* variable) {
  const char* given = std::getenv(variable);
  if (given == nullptr || *given == '\0') return std::nullopt;
  return given;
}

// Longer than the tests wait for anything else: many of them may start servers at once.
constexpr std::chrono::milliseconds kStart{60'000};

// By a process that does not know our leases.
struct PortTaken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace

std::optional<std::string> etcd_from_environment() { return named("BATON_TEST_ETCD"); }

// A server that was named is not skipped when it is not there: tests fail, and say so.
bool etcd_installed() { return named("BATON_TEST_ETCD_BIN") || in_path("etcd"); }
bool etcdctl_installed() { return named("BATON_TEST_ETCDCTL_BIN") || in_path("etcdctl"); }

Finished etcdctl(const std::string& endpoints, const std::vector<std::string>& arguments) {
  std::vector<std::string> words{named("BATON_TEST_ETCDCTL_BIN").value_or("etcdctl"),
                                 "--endpoints=" + endpoints};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return run(std::move(words), {"ETCDCTL_API=3"});
}

EtcdCluster::EtcdCluster(EtcdOptions options)
    : EtcdStore([this] { return awake_hosts(); }), options_(std::move(options)) {
  if (options_.servers != 1 && options_.servers != 3) {
    throw std::invalid_argument("EtcdCluster: 1 or 3 servers");
  }
  if (options_.tls && !options_.certificates) {
    options_.certificates = std::make_shared<TestCertificates>();
  }
  for (int attempt = 1;; ++attempt) {
    try {
      prepare();
      const Stopwatch watch;
      for (int i = 0; i < size(); ++i) {
        at(i).process->start();
        // A new server asks the others who is who. One that listens but does not answer yet, since
        // it is asking itself, costs it a second.
        wait_for("server " + std::to_string(i) + " to answer its peers", [&] {
          check_running(i);
          return http(loopback(at(i).peer.port()), {"/version", "", {}}).has_value();
        });
      }
      wait_for("all servers to serve", [this] {
        for (int i = 0; i < size(); ++i) check_running(i);
        return all_synced();
      });
      for (int i = 0; i < size(); ++i) wait_serving(i);
      start_time_ = watch.elapsed();
      return;
    } catch (const PortTaken&) {
      if (attempt == 3) throw;
    }
  }
}

EtcdCluster::~EtcdCluster() = default;

// Directories and ports, all new.
void EtcdCluster::prepare() {
  links_.reset();
  servers_.clear();
  std::vector<std::uint16_t> ports;
  ports.reserve(static_cast<std::size_t>(size()));
  for (int i = 0; i < size(); ++i) {
    ports.push_back(servers_.emplace_back(std::make_unique<Server>())->peer.port());
  }
  if (options_.peer_proxies) links_ = std::make_unique<EtcdLinks>(ports);
  for (int i = 0; i < size(); ++i) {
    at(i).process = std::make_unique<ServerProcess>(command(i), at(i).dir / "log");
  }
  if (links_) links_->open([this](int i) { return pid(i); });
}

std::vector<std::string> EtcdCluster::command(int i) const {
  const Server& server = at(i);
  const auto url = [](std::uint16_t port) { return "http://" + loopback(port); };
  const auto advertised = [&](int j) { return links_ ? links_->entry(j) : at(j).peer.port(); };
  std::string all;
  for (int j = 0; j < size(); ++j) {
    all += (j > 0 ? ",n" : "n") + std::to_string(j) + "=" + url(advertised(j));
  }
  const std::string clients = options_.tls ? "https://" + host(i) : url(server.client.port());
  const std::string ours = options_.tls ? "," + url(server.plain.port()) : "";
  std::vector<std::string> words{
      named("BATON_TEST_ETCD_BIN").value_or("etcd"), "--name=n" + std::to_string(i),
      "--data-dir=" + (server.dir / "data"), "--listen-client-urls=" + clients + ours,
      "--advertise-client-urls=" + clients, "--listen-peer-urls=" + url(server.peer.port()),
      "--initial-advertise-peer-urls=" + url(advertised(i)), "--initial-cluster=" + all,
      "--listen-metrics-urls=" + url(server.metrics.port()),
      // Another cluster, which had one of these ports before, is not taken for ours.
      "--initial-cluster-token=" + at(0).dir.path() + "-" + std::to_string(generation_),
      "--heartbeat-interval=" + std::to_string(options_.heartbeat.count()),
      "--election-timeout=" + std::to_string(options_.election.count()),
      // Not in the list of --help, but there since 3.4.10.
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

std::string EtcdCluster::host(int i) const { return loopback(client_port(i)); }

std::string EtcdCluster::hosts() const {
  std::string all;
  for (int i = 0; i < size(); ++i) all += (i > 0 ? "," : "") + host(i);
  return all;
}

std::string EtcdCluster::ask_host(int i) const {
  return options_.tls ? loopback(at(i).plain.port()) : host(i);
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

void EtcdCluster::kill(int i) { at(i).process->kill(); }

void EtcdCluster::start(int i, bool wait) {
  at(i).process->start();
  if (wait) wait_serving(i);
}

void EtcdCluster::restart(int i) {
  kill(i);
  start(i);
}

void EtcdCluster::wipe(bool another_cluster) {
  if (size() != 1 || links_) throw std::invalid_argument("EtcdCluster: wipe one server");
  kill(0);
  std::filesystem::remove_all(at(0).dir / "data");
  generation_ += another_cluster ? 1 : 0;
  at(0).process = std::make_unique<ServerProcess>(command(0), at(0).dir / "log");
  start(0);
}

void EtcdCluster::pause(int i) { at(i).process->pause(); }
void EtcdCluster::resume(int i) { at(i).process->resume(); }

// ---- When something is wrong ----

std::string EtcdCluster::tails() const {
  std::string all;
  for (int i = 0; i < size(); ++i) {
    all += "server " + std::to_string(i) + " (" + host(i) + "):\n" + at(i).process->tail();
  }
  return all;
}

void EtcdCluster::check_running(int i) const {
  if (running(i)) return;
  check_ports();
  throw std::runtime_error("etcd: server " + std::to_string(i) + " has ended\n" + tails());
}

void EtcdCluster::check_ports() const {
  for (const auto& server : servers_) {
    if (server->process->log_contains("address already in use")) {
      throw PortTaken("etcd: a port is taken\n" + tails());
    }
  }
}

void EtcdCluster::wait_for(const std::string& what, const std::function<bool()>& predicate) const {
  const Stopwatch watch;
  while (!predicate()) {
    if (watch.elapsed() > kStart) {
      throw std::runtime_error("etcd: waited " + std::to_string(watch.elapsed().count()) +
                               " ms for " + what + "\n" + tails());
    }
    ask_pause();
  }
}

}  // namespace baton::test
