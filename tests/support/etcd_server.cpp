#include "support/etcd_server.h"

#include "support/boot_clock.h"
#include "support/etcd_metrics.h"
#include "support/http.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace baton::test {
namespace {

bool in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access(folder.append("/").append(program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

// Between questions to a server.
void ask_pause() { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }

std::string loopback(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

// Longer than the tests wait for anything else: many of them may start servers at once.
constexpr std::chrono::milliseconds kStart{60'000};

// By a process that does not know our leases.
struct PortTaken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::int64_t whole(double number) { return static_cast<std::int64_t>(number); }

}  // namespace

std::optional<std::string> etcd_from_environment() {
  const char* given = std::getenv("BATON_TEST_ETCD");
  if (given == nullptr || *given == '\0') return std::nullopt;
  return given;
}

bool etcd_installed() { return in_path("etcd"); }

EtcdCluster::EtcdCluster(EtcdOptions options)
    : EtcdStore([this] { return awake_hosts(); }), options_(std::move(options)) {
  if (options_.servers != 1 && options_.servers != 3) {
    throw std::invalid_argument("EtcdCluster: 1 or 3 servers");
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
  const std::string clients = url(server.client.port());
  std::vector<std::string> words{
      "etcd", "--name=n" + std::to_string(i), "--data-dir=" + (server.dir / "data"),
      "--listen-client-urls=" + clients, "--advertise-client-urls=" + clients,
      "--listen-peer-urls=" + url(server.peer.port()),
      "--initial-advertise-peer-urls=" + url(advertised(i)), "--initial-cluster=" + all,
      "--listen-metrics-urls=" + url(server.metrics.port()),
      // Another cluster, which had one of these ports before, is not taken for ours.
      "--initial-cluster-token=" + at(0).dir.path(),
      "--heartbeat-interval=" + std::to_string(options_.heartbeat.count()),
      "--election-timeout=" + std::to_string(options_.election.count()),
      // Not in the list of --help, but there since 3.4.
      "--unsafe-no-fsync", "--bcrypt-cost=4", "--logger=zap", "--log-outputs=stderr"};
  words.insert(words.end(), options_.flags.begin(), options_.flags.end());
  return words;
}

std::string EtcdCluster::host(int i) const { return loopback(client_port(i)); }

std::string EtcdCluster::hosts() const {
  std::string all;
  for (int i = 0; i < size(); ++i) all += (i > 0 ? "," : "") + host(i);
  return all;
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

void EtcdCluster::pause(int i) { at(i).process->pause(); }
void EtcdCluster::resume(int i) { at(i).process->resume(); }

// ---- Roles ----

std::vector<std::string> EtcdCluster::awake_hosts() const {
  std::vector<std::string> all;
  for (int i = 0; i < size(); ++i) {
    if (awake(i)) all.push_back(host(i));
  }
  return all;
}

std::optional<EtcdStatus> EtcdCluster::status(int i) const { return EtcdStore::status(host(i)); }

std::optional<int> EtcdCluster::find_leader(int except) const {
  std::optional<int> best;
  std::uint64_t best_term = 0;
  for (int i = 0; i < size(); ++i) {
    if (i == except || !awake(i)) continue;
    const auto now = status(i);
    if (!now || !now->leads() || (best && now->term <= best_term)) continue;
    best = i;
    best_term = now->term;
  }
  return best;
}

int EtcdCluster::leader() { return leader_after(-1); }

int EtcdCluster::leader_after(int old) {
  std::optional<int> found;
  wait_for("a leader", [&] { return (found = find_leader(old)).has_value(); });
  return *found;
}

int EtcdCluster::a_follower() {
  std::optional<int> found;
  wait_for("a follower", [&] {
    for (int i = 0; i < size() && !found; ++i) {
      if (!awake(i)) continue;
      if (const auto now = status(i); now && now->leader != 0 && !now->leads()) found = i;
    }
    return found.has_value();
  });
  return *found;
}

bool EtcdCluster::serving(int i) { return awake(i) && reads(host(i)); }

void EtcdCluster::wait_serving(int i) {
  wait_for("server " + std::to_string(i) + " to serve", [&] {
    check_running(i);
    return serving(i);
  });
}

void EtcdCluster::wait_synced() {
  wait_for("all servers to be in step", [this] { return all_synced(); });
}

bool EtcdCluster::all_synced() {
  const auto leads = find_leader(-1);
  const auto first = leads ? status(*leads) : std::nullopt;
  if (!first || first->applied < first->committed) return false;
  for (int i = 0; i < size(); ++i) {
    if (i == *leads || !awake(i)) continue;
    const auto now = status(i);
    if (!now || now->leader != first->member || now->term != first->term ||
        now->applied < first->committed) {
      return false;
    }
  }
  return true;
}

void EtcdCluster::make_leader(int i) {
  wait_for("server " + std::to_string(i) + " to lead", [&] {
    const auto now = status(i);
    if (!now) return false;
    if (now->leads()) return true;
    try {
      move_leader(host(leader()), now->member);
    } catch (const EtcdError&) {  // another one leads by now
    }
    return false;
  });
}

// ---- What servers count ----

double EtcdCluster::metric(int i, const std::string& which) const {
  const auto answer = http(loopback(at(i).metrics.port()), {"/metrics", "", {}});
  return answer && answer->status == 200 ? metric_in(answer->body, which) : -1;
}

double EtcdCluster::counter(int i, const std::string& name, const std::string& service,
                            const std::string& method, const std::string& more) const {
  return metric(i, name + "{grpc_service=\"etcdserverpb." + service + "\",grpc_method=\"" + method +
                       "\"" + more + "}");
}

std::int64_t EtcdCluster::unary_calls(int i, const std::string& service,
                                      const std::string& method) const {
  return whole(counter(i, "grpc_server_started_total", service, method, ",grpc_type=\"unary\""));
}

std::int64_t EtcdCluster::streams(int i, const std::string& service,
                                  const std::string& method) const {
  return whole(
      counter(i, "grpc_server_started_total", service, method, ",grpc_type=\"bidi_stream\""));
}

std::int64_t EtcdCluster::open_streams(int i, const std::string& service,
                                       const std::string& method) const {
  const auto ended = counter(i, "grpc_server_handled_total", service, method);
  const auto begun = streams(i, service, method);
  return begun < 0 || ended < 0 ? -1 : begun - whole(ended);
}

std::int64_t EtcdCluster::messages_received(int i, const std::string& service,
                                            const std::string& method) const {
  return whole(counter(i, "grpc_server_msg_received_total", service, method));
}

std::int64_t EtcdCluster::messages_sent(int i, const std::string& service,
                                        const std::string& method) const {
  return whole(counter(i, "grpc_server_msg_sent_total", service, method));
}

std::int64_t EtcdCluster::watchers(int i) const {
  return whole(metric(i, "etcd_debugging_mvcc_watcher_total"));
}

// ---- Network between servers ----

const EtcdLinks& EtcdCluster::links() const {
  if (!links_) throw std::logic_error("EtcdCluster: links need peer_proxies");
  return *links_;
}

void EtcdCluster::isolate(int i) const {
  for (const auto& link : links().links_of(i)) link.blackhole();
}

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

template <class Predicate>
void EtcdCluster::wait_for(const std::string& what, Predicate predicate) const {
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
