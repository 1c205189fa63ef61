#include "support/server_cluster.h"

#include "support/boot_clock.h"

#include <stdexcept>
#include <thread>

namespace baton::test {
namespace {

// Longer than all other waits of the tests: when many tests run at once, two cores need 20 s to
// start three ZooKeeper servers.
constexpr std::chrono::milliseconds kStart{60'000};

// A port was taken by a process that does not use PortLease.
struct PortTaken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace

std::string local_host(std::uint16_t port) { return "127.0.0.1:" + std::to_string(port); }

ServerCluster::ServerCluster(const char* program, int servers, std::size_t ports)
    : program_(program), size_(servers), ports_(ports) {
  if (servers != 1 && servers != 3) {
    throw std::invalid_argument(std::string(program) + ": 1 or 3 servers");
  }
}

void ServerCluster::start_all() {
  for (int attempt = 1;; ++attempt) {
    try {
      prepare();
      const Stopwatch watch;
      for (int i = 0; i < size(); ++i) {
        at(i).process->start();
        started(i);
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

void ServerCluster::new_servers() {
  servers_.clear();
  for (int i = 0; i < size(); ++i) {
    servers_.push_back(std::make_unique<Server>());
    servers_.back()->ports = std::vector<PortLease>(ports_);
  }
}

std::string ServerCluster::host(int i) const { return local_host(client_port(i)); }

std::string ServerCluster::hosts() const {
  std::string all;
  for (int i = 0; i < size(); ++i) all += (i > 0 ? "," : "") + host(i);
  return all;
}

void ServerCluster::start(int i, bool wait) {
  at(i).process->start();
  if (wait) wait_serving(i);
}

void ServerCluster::restart(int i) {
  kill(i);
  start(i);
}

int ServerCluster::leader_after(int old) {
  std::optional<int> found;
  wait_for("a leader", [&] { return (found = find_leader(old)).has_value(); });
  return *found;
}

int ServerCluster::a_follower() {
  std::optional<int> found;
  wait_for("a follower", [&] {
    for (int i = 0; i < size() && !found; ++i) {
      if (awake(i) && follows(i)) found = i;
    }
    return found.has_value();
  });
  return *found;
}

void ServerCluster::wait_serving(int i) {
  wait_for("server " + std::to_string(i) + " to serve", [&] {
    check_running(i);
    return serving(i);
  });
}

void ServerCluster::wait_synced() {
  wait_for("all servers to be in step", [this] { return all_synced(); });
}

const ServerLinks& ServerCluster::network() const {
  if (links() == nullptr) throw std::logic_error("a cluster's links need peer_proxies");
  return *links();
}

void ServerCluster::isolate(int i) const {
  for (const auto& link : network().links_of(i)) link.blackhole();
}

std::string ServerCluster::tails() const {
  std::string all;
  for (int i = 0; i < size(); ++i) {
    all += "server " + std::to_string(i) + " (" + host(i) + "):\n" + at(i).process->tail();
  }
  return all;
}

void ServerCluster::check_running(int i) const {
  if (running(i)) return;
  check_ports();
  throw std::runtime_error(program_ + (": server " + std::to_string(i)) + " has ended\n" + tails());
}

void ServerCluster::check_ports() const {
  for (const auto& server : servers_) {
    // "Address already in use", also in lower case.
    if (server->process->log_contains("ddress already in use")) {
      throw PortTaken(program_ + std::string(": a port is taken\n") + tails());
    }
  }
}

// Also checks the ports, because a server whose port is taken may continue without it.
void ServerCluster::wait_for(const std::string& what,
                             const std::function<bool()>& predicate) const {
  const Stopwatch watch;
  for (auto look = std::chrono::milliseconds(2000); !predicate();) {
    if (watch.elapsed() > look) {
      look = watch.elapsed() + std::chrono::milliseconds(1000);
      check_ports();
    }
    if (watch.elapsed() > kStart) {
      throw std::runtime_error(program_ + (": waited " + std::to_string(watch.elapsed().count())) +
                               " ms for " + what + "\n" + tails());
    }
    // A pause between requests, because each request makes a connection and a line in the server's
    // log.
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace baton::test
