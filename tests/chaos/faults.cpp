#include "chaos/faults.h"

#include "chaos/process.h"
#include "support/eventually.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <random>
#include <string_view>
#include <utility>

namespace baton::chaos {

using namespace std::chrono_literals;
using test::boot_now;
using test::eventually;
using test::kLong;
using test::Stopwatch;

std::string FaultyStore::hosts() const {
  std::string list;
  for (const auto port : ports) {
    list += (list.empty() ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(port);
  }
  return list;
}

Client connect_quietly(const std::string& url, std::chrono::milliseconds session,
                       const std::string& label) {
  ClientOptions options;
  options.session_timeout = session;
  options.connect_timeout = 20s;
  options.label = label;
  options.log = [](LogLevel, std::string_view) {};
  return Client::connect(url, options);
}

std::string fresh_root() {
  static std::atomic<int> next{0};
  return "/faults-" + std::to_string(next++);
}

::testing::AssertionResult nobody_in_line(Client& observer, const FaultyStore& store) {
  // One second more, because the machine may be busy.
  return eventually(
      "nobody in line", [&] { return observer.list().empty(); }, store.session + store.grace + 1s);
}

::testing::AssertionResult wait_until(const Stopwatch& watch, std::chrono::milliseconds time) {
  return eventually("time to pass", [&] { return watch.elapsed() >= time; });
}

// ---- the crowd

Crowd::Crowd(const FaultyStore& store, std::string root) : root_(std::move(root)) {
  for (std::size_t i = 0; i < kClients; ++i) {
    auto& member = *members_.emplace_back(std::make_unique<Member>());
    for (const auto port : store.ports) {
      member.proxies.emplace_back(std::make_unique<test::Proxy>(port));
    }
    // Each client connects while it reaches one server only, so that every server has a client.
    // The order of the hosts is not enough: the ZooKeeper client shuffles them.
    std::string hosts;
    for (std::size_t n = 0; n < member.proxies.size(); ++n) {
      auto& proxy = *member.proxies[(i + n) % member.proxies.size()];
      hosts += (n == 0 ? "" : ",") + proxy.host();
      if (n != 0) proxy.cut();
    }
    member.client = std::make_unique<Client>(
        connect_quietly(store.url(hosts, root_), store.session, "client" + std::to_string(i)));
    for (const auto& proxy : member.proxies) proxy->heal();
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
    // A longer wait means that the waiter was forgotten.
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
  const std::uint64_t token = lock.token();
  // True if the lock is lost before its release; below, also if it is lost during the release.
  bool taken = !lock.valid();
  try {
    lock.release();
  } catch (const Error& error) {
    if (error.errc() == Errc::lock_lost) ++lost_;
    taken = taken || error.errc() != Errc::timeout;
    // The lock may also be lost while it is being released.
    EXPECT_TRUE(error.errc() == Errc::lock_lost || error.errc() == Errc::session_expired ||
                error.errc() == Errc::timeout)
        << error.what();
  }
  if (end < begin) return;
  const auto ending = taken ? history::Ending::lost : history::Ending::released;
  holds(which).add({.granted = begin, .left = end, .token = token, .ending = ending});
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

void Crowd::close_clients() {
  for (const auto& member : members_) member->client->close();
}

void with_crowd(const FaultyStore& store, bool linger, const std::function<void(Crowd&)>& fault,
                const std::function<void(Crowd&, Client& observer)>& check) {
  Crowd crowd(store, fresh_root());
  auto observer =
      connect_quietly(store.url(store.hosts(), crowd.root()), store.session, "observer");
  ASSERT_TRUE(crowd.everybody_goes_on());
  if (linger) {
    ASSERT_TRUE(crowd.linger(true));
  }
  const Stopwatch watch;
  fault(crowd);
  std::printf("[          ] healed after %lld ms\n",
              static_cast<long long>(watch.elapsed().count()));
  EXPECT_TRUE(crowd.linger(false));
  EXPECT_TRUE(crowd.everybody_goes_on());
  crowd.stop();
  EXPECT_TRUE(nobody_in_line(observer, store));
  check(crowd, observer);
  std::printf("[          ] %zu and %zu holds, %d lost, after %lld ms\n", crowd.holds(0).size(),
              crowd.holds(1).size(), crowd.lost(), static_cast<long long>(watch.elapsed().count()));
}

void expect_exclusive(Crowd& crowd) {
  for (int lock = 0; lock < Crowd::kLocks; ++lock) {
    EXPECT_TRUE(exclusive_and_ordered(crowd.holds(lock).all())) << Crowd::name(lock);
  }
}

// ---- a process that holds a lock

HoldingChild::HoldingChild(const std::string& url, std::chrono::milliseconds session,
                           const std::string& name)
    : pid_(start_self({"--hold", url, std::to_string(session.count()), name, record()})) {}

HoldingChild::~HoldingChild() {
  if (pid_ > 0) kill_and_reap(pid_);
}

::testing::AssertionResult HoldingChild::wait_held() const {
  return eventually("the child to hold",
                    [&] { return std::filesystem::exists(record() + ".held"); });
}

bool HoldingChild::stop() const {
  ::kill(pid_, SIGSTOP);
  int status = 0;
  return ::waitpid(pid_, &status, WUNTRACED) == pid_ && WIFSTOPPED(status);
}

void HoldingChild::go_on() const { ::kill(pid_, SIGCONT); }

void HoldingChild::kill() { EXPECT_EQ(kill_and_reap(std::exchange(pid_, -1)), 128 + SIGKILL); }

std::optional<int> HoldingChild::end() {
  const auto code = wait_for_end(pid_, kLong);
  if (code) pid_ = -1;
  return code;
}

std::vector<std::chrono::milliseconds> time_after_crashes(const FaultyStore& store,
                                                          const std::string& root,
                                                          const std::vector<std::string>& hosts) {
  std::vector<std::atomic<std::int64_t>> granted(hosts.size());
  std::vector<std::int64_t> killed;
  std::vector<std::unique_ptr<HoldingChild>> children;
  std::vector<std::chrono::milliseconds> took;
  auto client = connect_quietly(store.url(store.hosts(), root), store.session, "next");
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const std::string name = "crash" + std::to_string(i);
    children.push_back(
        std::make_unique<HoldingChild>(store.url(hosts[i], root), store.session, name));
    EXPECT_TRUE(children.back()->wait_held());
    auto& when = granted[i];
    client.mutex(name).acquire_async(
        {}, [&when](const Result<Lock>& lock) { when = lock ? boot_now().count() : -1; });
    EXPECT_TRUE(
        eventually("next in line", [&] { return client.inspect(name).entries.size() == 2; }));
  }
  for (const auto& child : children) {
    killed.push_back(boot_now().count());
    child->kill();
  }
  for (std::size_t i = 0; i < granted.size(); ++i) {
    EXPECT_TRUE(eventually("the next one to hold", [&] { return granted[i] != 0; }));
    EXPECT_GT(granted[i], 0);
    took.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::nanoseconds(granted[i] - killed[i])));
    std::printf("[          ] the next one held after %lld ms\n",
                static_cast<long long>(took.back().count()));
  }
  client.close();  // before `granted` is destroyed, which its handlers write to
  return took;
}

namespace {

// The role of a child process: --hold URL MS NAME FILE. Acquires the lock, writes FILE.held, and
// asks valid() until the lock is lost. Then it writes its record (see history/holds.h) to FILE and
// ends.
int hold_role(const std::vector<std::string>& arguments) {
  auto client = connect_quietly(arguments.at(0),
                                std::chrono::milliseconds(std::stol(arguments.at(1))), "child");
  auto lock = client.mutex(arguments.at(2)).acquire({.timeout = kLong});
  const auto begin = boot_now();
  std::ofstream(arguments.at(3) + ".held") << lock.token() << "\n";
  const auto end = stay_while_valid(lock, [] { return false; });
  if (lock.valid()) return 5;  // loss is final
  // The file is renamed at the end, so a reader never sees a part of it.
  const std::string part = arguments.at(3) + ".part";
  std::ofstream(part) << "child 0 0 0 " << begin.count() << " " << end.count() << " "
                      << lock.token() << " -\n";
  return std::rename(part.c_str(), arguments.at(3).c_str()) == 0 ? 0 : 6;
}

}  // namespace
}  // namespace baton::chaos

int main(int argc, char** argv) {
  if (argc == 7 && std::string_view(argv[1]) == "--hold") {
    try {
      baton::chaos::end_with_parent(argv[6]);
      return baton::chaos::hold_role({argv + 2, argv + 6});
    } catch (const std::exception& e) {
      std::fprintf(stderr, "--hold: %s\n", e.what());
      return 1;
    }
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
