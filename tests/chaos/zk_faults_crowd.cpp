#include "chaos/zk_faults.h"

#include "support/eventually.h"

#include <algorithm>
#include <fstream>
#include <random>
#include <utility>

namespace baton::chaos {

using namespace std::chrono_literals;
using test::boot_now;
using test::eventually;
using test::kLong;

Client connect_quietly(const std::string& hosts, const std::string& root,
                       const std::string& label) {
  ClientOptions options;
  options.session_timeout = kZkTimeout;
  options.connect_timeout = 20s;
  options.label = label;
  options.log = [](LogLevel, std::string_view) {};
  return Client::connect("zk://" + hosts + root, options);
}

std::string fresh_zk_root() {
  static std::atomic<int> next{0};
  return "/faults-" + std::to_string(next++);
}

std::unique_ptr<test::ZkEnsemble> ZkFaults::zk_;

void ZkFaults::SetUpTestSuite() {
  if (zk_ || !test::zk_installed()) return;
  test::ZkOptions options;
  options.servers = 3;
  options.peer_proxies = true;
  options.tick = kZkTick;
  zk_ = std::make_unique<test::ZkEnsemble>(options);
}

void ZkFaults::SetUp() {
  if (!zk_) GTEST_SKIP() << "no ZooKeeper on this machine";
}

::testing::AssertionResult nobody_in_line(Client& observer) {
  // A second for a busy machine.
  const auto limit = kZkTimeout + kZkTick * 3 / 2 + 1s;
  return eventually(
      "nobody in line", [&] { return observer.list().empty(); }, limit);
}

Crowd::Crowd(const test::ZkEnsemble& zk, std::string root) : root_(std::move(root)) {
  for (int i = 0; i < kClients; ++i) {
    auto& member = *members_.emplace_back(std::make_unique<Member>());
    std::string hosts;
    for (int server = 0; server < zk.size(); ++server) {
      const auto& proxy =
          member.proxies.emplace_back(std::make_unique<test::Proxy>(zk.client_port(server)));
      hosts += (hosts.empty() ? "" : ",") + proxy->host();
    }
    member.client =
        std::make_unique<Client>(connect_quietly(hosts, root_, "client" + std::to_string(i)));
  }
  for (int client = 0; client < kClients; ++client) {
    for (int lock = 0; lock < kLocks; ++lock) {
      threads_.emplace_back(
          [this, client, lock](const std::stop_token& stop) { work(client, lock, stop); });
    }
  }
}

void Crowd::work(int client, int lock, const std::stop_token& stop) {
  auto& member = *members_.at(static_cast<std::size_t>(client));
  auto mutex = member.client->mutex(name(lock));
  std::minstd_rand random(static_cast<unsigned>(lock) + 1);
  while (!stop.stop_requested()) {
    // Who waits longer than this was forgotten.
    auto result = mutex.acquire_result({.timeout = kLong, .stop = stop});
    if (result) {
      hold(std::move(result).value(), client, lock, random() % 20);
      ++member.grants.at(static_cast<std::size_t>(lock));
    } else if (result.error().errc() != Errc::cancelled) {
      ADD_FAILURE() << result.error().what();
    }
  }
}

void Crowd::hold(Lock lock, int client, int which, unsigned length_ms) {
  const auto begin = boot_now();
  bool lingers = false;
  const auto end = stay_while_valid(lock, [&] {
    const bool stay = which == 0 && linger_;
    if (stay && !std::exchange(lingers, true)) {
      lingerer_ = client;
      ++lingering_;
    }
    return !stay && boot_now() - begin >= std::chrono::milliseconds(length_ms);
  });
  if (lingers) --lingering_;
  if (end >= begin) holds(which).add({begin, end, lock.token()});
  try {
    lock.release();
  } catch (const Error& error) {
    if (error.errc() == Errc::lock_lost) ++lost_;
    EXPECT_TRUE(error.errc() == Errc::lock_lost || error.errc() == Errc::timeout) << error.what();
  }
}

::testing::AssertionResult Crowd::linger(bool on) {
  linger_ = on;
  if (!on) return ::testing::AssertionSuccess();
  return eventually("somebody who lingers", [&] { return lingering_ > 0; });
}

::testing::AssertionResult Crowd::everybody_goes_on() {
  constexpr int kMore = 2;
  std::vector<int> wanted;
  for (const auto& member : members_) {
    for (const auto& grants : member->grants) wanted.push_back(grants + kMore);
  }
  return eventually("everybody to go on", [&] {
    auto want = wanted.begin();
    for (const auto& member : members_) {
      for (const auto& grants : member->grants) {
        if (grants < *want++) return false;
      }
    }
    return true;
  });
}

int Crowd::grants(int lock) const {
  int sum = 0;
  for (const auto& member : members_) sum += member->grants.at(static_cast<std::size_t>(lock));
  return sum;
}

::testing::AssertionResult Crowd::goes_on(int lock) {
  const int wanted = grants(lock) + kClients;
  return eventually(name(lock) + " to go on", [&] { return grants(lock) >= wanted; });
}

int Crowd::busiest(int but) const {
  std::vector<int> clients(members_.front()->proxies.size());
  for (const auto& member : members_) {
    const std::string endpoint = member->client->session().endpoint;
    for (std::size_t i = 0; i < clients.size(); ++i) {
      clients[i] += member->proxies[i]->host() == endpoint && static_cast<int>(i) != but;
    }
  }
  const auto most = std::max_element(clients.begin(), clients.end());
  EXPECT_GT(*most, 0) << "all clients are on server " << but;
  return static_cast<int>(most - clients.begin());
}

void Crowd::stop() {
  for (auto& thread : threads_) thread.request_stop();
  threads_.clear();
}

int hold_role(const std::vector<std::string>& arguments) {
  auto client = connect_quietly(arguments.at(0), arguments.at(1), "child");
  auto lock = client.mutex(arguments.at(2)).acquire({.timeout = kLong});
  const auto begin = boot_now();
  std::ofstream(arguments.at(3) + ".held") << lock.token() << "\n";
  const auto end = stay_while_valid(lock, [] { return false; });
  if (lock.valid()) return 5;  // loss is final
  // Whole, or not there at all: it is renamed.
  const std::string part = arguments.at(3) + ".part";
  std::ofstream(part) << begin.count() << " " << end.count() << " " << lock.token() << "\n";
  return std::rename(part.c_str(), arguments.at(3).c_str()) == 0 ? 0 : 6;
}

}  // namespace baton::chaos
