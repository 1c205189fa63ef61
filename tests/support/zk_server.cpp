#include "support/zk_server.h"

#include "support/eventually.h"
#include "support/run.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

namespace baton::test {
namespace {

constexpr const char* kClassPath = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar";

std::string class_path() {
  const char* given = std::getenv("BATON_TEST_ZK_CLASSPATH");
  return given != nullptr && *given != '\0' ? given : kClassPath;
}

// A pause between requests, because each request makes a connection and a line in the server's log.
void ask_pause() { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }

}  // namespace

std::optional<std::string> zk_from_environment() {
  const char* given = std::getenv("BATON_TEST_ZK");
  if (given == nullptr || *given == '\0') return std::nullopt;
  return given;
}

bool zk_installed() {
  // If the environment names jars that do not exist, tests fail. They must not skip.
  if (class_path() != kClassPath) return true;
  return in_path("java") && std::filesystem::exists(class_path().substr(0, class_path().find(':')));
}

ZkEnsemble::ZkEnsemble(ZkOptions options)
    : ServerCluster("zookeeper", options.servers, 2), options_(std::move(options)) {
  start_all();
}

void ZkEnsemble::prepare() {
  links_.reset();
  new_servers();
  std::vector<ZkLinks::Ports> ports;
  ports.reserve(static_cast<std::size_t>(size()));
  for (int i = 0; i < size(); ++i) ports.push_back({port(i, kQuorum), port(i, kElection)});
  if (options_.peer_proxies) links_ = std::make_unique<ZkLinks>(ports);
  for (int i = 0; i < size(); ++i) {
    configure(i);
    at(i).process = std::make_unique<ServerProcess>(command(i), at(i).dir / "log");
  }
}

void ZkEnsemble::configure(int i) const {
  const Server& server = at(i);
  std::filesystem::create_directory(server.dir / "data");
  std::ofstream(server.dir / "data/myid") << i + 1 << "\n";
  std::ofstream out(server.dir / "zoo.cfg");
  out << "tickTime=" << options_.tick.count() << "\n"
      << "initLimit=" << options_.init_limit << "\n"
      << "syncLimit=" << options_.sync_limit << "\n"
      << "dataDir=" << (server.dir / "data") << "\n"
      << "clientPort=" << server.client.port() << "\n"
      << "clientPortAddress=127.0.0.1\n"
      << "maxClientCnxns=0\n"
      << "admin.enableServer=false\n"
      << "4lw.commands.whitelist=*\n";
  if (options_.min_session.count() > 0) {
    out << "minSessionTimeout=" << options_.min_session.count() << "\n";
  }
  if (options_.max_session.count() > 0) {
    out << "maxSessionTimeout=" << options_.max_session.count() << "\n";
  }
  for (int j = 0; size() > 1 && j < size(); ++j) {
    ZkLinks::Ports entry{port(j, kQuorum), port(j, kElection)};
    if (links_ && j != i) entry = links_->entry(i, j);
    out << "server." << j + 1 << "=127.0.0.1:" << entry.quorum << ":" << entry.election << "\n";
  }
  for (const auto& line : options_.config) out << line << "\n";
}

std::vector<std::string> ZkEnsemble::command(int i) const {
  const Server& server = at(i);
  std::vector<std::string> words{
      "java", "-cp", class_path(),
      // Starts quickly, needs little memory, and writes no files outside the server's directory.
      "-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:-UsePerfData",
      "-Djava.io.tmpdir=" + server.dir.path(), "-XX:ErrorFile=" + (server.dir / "hs_err.log"),
      "-XX:+ExitOnOutOfMemoryError", "-Djava.net.preferIPv4Stack=true",
      "-Dorg.slf4j.simpleLogger.showDateTime=true",
      "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
      "-Dorg.slf4j.simpleLogger.showShortLogName=true",
      // Does not log each request of the tests.
      "-Dorg.slf4j.simpleLogger.log.org.apache.zookeeper.server.NIOServerCnxn=warn",
      "-Dzookeeper.jmx.log4j.disable=true", "-Dzookeeper.forceSync=no",
      "-Dzookeeper.fastleader.maxNotificationInterval=1600",
      "-Dzookeeper.leader.maxTimeToWaitForEpoch=2000"};
  words.insert(words.end(), options_.jvm.begin(), options_.jvm.end());
  words.insert(words.end(),
               {"org.apache.zookeeper.server.quorum.QuorumPeerMain", server.dir / "zoo.cfg"});
  return words;
}

void ZkEnsemble::start(int i, Proxy& door) {
  door.cut();
  start(i);
  door.heal();
}

void ZkEnsemble::rebuild(int i) {
  for (int j = 0; j < size(); ++j) {
    if (!awake(j)) throw std::runtime_error("a server is down: nothing may be thrown away");
  }
  wait_synced();
  kill(i);
  wait_synced();  // the other servers, before this server can vote again
  if (std::filesystem::remove_all(at(i).dir / "data/version-2") == 0) {
    throw std::runtime_error("a server without data: there is nothing to throw away");
  }
  start(i);
  wait_synced();
}

std::optional<ZkEnsemble::Role> ZkEnsemble::role(int i) const {
  Role found;
  std::istringstream lines(four_letter(i, "srvr"));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("Mode: ")) found.mode = line.substr(6);
    if (line.starts_with("Zxid: ")) found.zxid = std::strtoull(line.c_str() + 6, nullptr, 16);
  }
  // A server that looks for a leader answers, but reports no mode.
  if (found.mode.empty()) return std::nullopt;
  return found;
}

std::optional<int> ZkEnsemble::find_leader(int except) const {
  std::optional<int> best;
  std::uint64_t best_epoch = 0;
  for (int i = 0; i < size(); ++i) {
    if (i == except || !awake(i)) continue;
    const auto r = role(i);
    if (!r || r->mode == "follower") continue;
    if (best && r->zxid >> 32 <= best_epoch) continue;
    best = i;
    best_epoch = r->zxid >> 32;
  }
  return best;
}

bool ZkEnsemble::follows(int i) const {
  const auto r = role(i);
  return r && r->mode == "follower";
}

bool ZkEnsemble::serving(int i) { return role(i).has_value(); }

bool ZkEnsemble::all_synced() const {
  const auto leads = find_leader(-1);
  const auto first = leads ? role(*leads) : std::nullopt;
  if (!first) return false;
  for (int i = 0; i < size(); ++i) {
    if (i == *leads || !awake(i)) continue;
    const auto r = role(i);
    // Before the first change under a new leader, other servers may still show the last zxid of the
    // previous leader. They have the same data, because otherwise they would not serve.
    const bool unchanged = (first->zxid & 0xffffffff) == 0;
    if (!r || (r->zxid < first->zxid && !unchanged)) return false;
  }
  return true;
}

// "zk_version	3.8.0-5a02a05eddb59aee6ac762f7ea82e92a68eb9c0f, built on ..."
std::string ZkEnsemble::version() const {
  for (int i = 0; i < size(); ++i) {
    const auto table = mntr(i);
    const auto found = table.find("zk_version");
    if (found != table.end()) return found->second.substr(0, found->second.find_first_of("-, "));
  }
  return "";
}

std::string ZkEnsemble::four_letter(int i, const std::string& word) const {
  return test::four_letter(host(i), word);
}

std::int64_t ZkEnsemble::number(int i, const std::string& name) const {
  const auto table = mntr(i);
  const auto found = table.find(name);
  return found == table.end() ? -1 : std::strtoll(found->second.c_str(), nullptr, 10);
}

std::map<std::string, std::set<std::int64_t>> ZkEnsemble::watches(int i) const {
  return parse_wchp(four_letter(i, "wchp"));
}

std::optional<int> ZkEnsemble::server_of(std::int64_t session) const {
  for (int i = 0; i < size(); ++i) {
    if (!awake(i)) continue;
    for (const auto& c : connections(i)) {
      if (c.session == session) return i;
    }
  }
  return std::nullopt;
}

ZkDump ZkEnsemble::dump() {
  std::string answer;  // an incomplete answer does not mean that there are no sessions
  wait_for("the sessions", [&] {
    answer = four_letter(leader(), "dump");
    return answer.find("ephemeral nodes dump") != answer.npos;
  });
  return parse_dump(answer);
}

std::set<std::int64_t> ZkEnsemble::sessions() { return dump().sessions; }

bool ZkEnsemble::session_exists(std::int64_t session) {
  // An expired session leaves the list at once. Its nodes are removed a little later.
  const auto seen = dump();
  return seen.sessions.contains(session) || seen.ephemerals.contains(session);
}

::testing::AssertionResult ZkEnsemble::wait_session_gone(std::int64_t session,
                                                         std::chrono::milliseconds limit) {
  return eventually_with(
      "end of session " + session_text(session) + " at the server", limit,
      [&] { return !session_exists(session); }, ask_pause);
}

::testing::AssertionResult ZkEnsemble::end_session(std::int64_t session) {
  // At another server this does not disturb the client before the session ends.
  const auto there = server_of(session);
  int by = leader();
  for (int i = 0; i < size() && by == there; ++i) {
    if (i != there && awake(i) && serving(i)) by = i;
  }
  if (!test::end_session(host(by), session)) {
    return ::testing::AssertionFailure() << "server would not end " << session_text(session);
  }
  return wait_session_gone(session);
}

}  // namespace baton::test
