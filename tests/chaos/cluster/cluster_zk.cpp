// A cluster of three ZooKeeper servers for chaos runs.
#include "chaos/cluster/cluster.h"
#include "chaos/cluster/contender.h"
#include "chaos/cluster/zk_audit.h"
#include "support/zk_server.h"
#include "support/zk_test_client.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace baton::chaos {
namespace {

using namespace std::chrono_literals;

test::ZkOptions options() {
  test::ZkOptions options;
  options.servers = 3;
  options.tick = 500ms;
  options.sync_limit = 4;
  options.peer_proxies = true;
  return options;
}

struct Node {
  std::uint64_t created = 0;  // zxid of its creation
  std::int64_t owner = 0;
  std::string data;
};

// A session of the test itself, which does not use the proxies of clients. Its reads are never
// older than the call. Not thread-safe.
class Eyes {
 public:
  explicit Eyes(const std::string& hosts) : hosts_(hosts) { open(); }
  ~Eyes() { ::zookeeper_close(handle_); }
  Eyes(const Eyes&) = delete;
  Eyes& operator=(const Eyes&) = delete;

  // Writes to a node that no client reads. A leader that is cut off answers a sync alone, but not a
  // write. With each write, the servers also compare their data (ZkAudit).
  void catch_up() {
    if (expired()) {
      ::zookeeper_close(std::exchange(handle_, nullptr));
      open();
    }
    expect(::zoo_set(handle_, "/", "", 0, -1), "a write");
  }
  std::vector<std::string> children(const std::string& path) {
    String_vector names{};
    const int code = ::zoo_get_children(handle_, path.c_str(), 0, &names);
    std::vector<std::string> all;
    for (int i = 0; code == ZOK && i < names.count; ++i) all.emplace_back(names.data[i]);
    if (code == ZOK) ::deallocate_String_vector(&names);
    expect(code, "list " + path);
    return all;
  }
  std::optional<Node> get(const std::string& path) {
    char buffer[1024];
    int size = sizeof buffer;
    Stat stat{};
    const int code = ::zoo_get(handle_, path.c_str(), 0, buffer, &size, &stat);
    expect(code, "read " + path);
    if (code == ZNONODE) return std::nullopt;
    return Node{static_cast<std::uint64_t>(stat.czxid), stat.ephemeralOwner,
                std::string(buffer, static_cast<std::size_t>(std::max(size, 0)))};
  }
  // Returns false if the node does not exist or is not empty.
  bool remove(const std::string& path) {
    const int code = ::zoo_delete(handle_, path.c_str(), -1);
    if (code != ZNOTEMPTY) expect(code, "delete " + path);
    return code == ZOK;
  }

 private:
  static void expect(int code, const std::string& what) {
    if (code == ZOK || code == ZNONODE) return;
    throw std::runtime_error(what + ": " + ::zerror(code));
  }
  bool expired() const {
    return handle_ == nullptr || ::zoo_state(handle_) == ZOO_EXPIRED_SESSION_STATE;
  }
  void open() {
    ::zoo_set_debug_level(static_cast<ZooLogLevel>(0));  // the client library would log every fault
    handle_ = ::zookeeper_init(
        hosts_.c_str(), [](zhandle_t*, int, int, const char*, void*) {}, 4'000, nullptr, nullptr,
        0);
    if (handle_ == nullptr) throw std::runtime_error("no session at " + hosts_);
  }

  const std::string hosts_;
  zhandle_t* handle_ = nullptr;
};

// A node that goes with its session.
class ZkGuest : public Guest {
 public:
  ZkGuest(const std::string& hosts, const std::string& prefix) : client_(hosts, 2 * kSession) {
    const int code = client_.create_numbered(prefix, path_);
    if (code != ZOK) throw std::runtime_error("create " + prefix + ": " + ::zerror(code));
  }
  const std::string& where() const override { return path_; }
  bool there() override { return known(client_.exists(path_)) == ZOK; }
  bool leave() override { return known(client_.remove(path_)) == ZNONODE || !there(); }

 private:
  int known(int code) const {
    if (client_.expired()) return ZNONODE;
    if (code == ZOK || code == ZNONODE) return code;
    throw std::runtime_error(path_ + ": " + ::zerror(code));
  }

  test::ZkTestClient client_;
  std::string path_;
};

class OverZk : public Cluster {
 public:
  std::string scheme() const override { return "zk"; }
  std::string version() const override { return "zk " + servers_->version(); }

  std::vector<InLine> in_line(int locks) override {
    const std::lock_guard guard(mutex_);
    std::vector<InLine> all;
    std::map<std::string, InLine> seen;  // the meaning of a name never changes
    eyes().catch_up();
    for (int lock = 0; lock < locks; ++lock) {
      const std::string path = directory(static_cast<std::uint32_t>(lock));
      auto names = eyes().children(path);
      std::sort(names.begin(), names.end(),
                [](const auto& a, const auto& b) { return number(a) < number(b); });
      std::erase_if(names, [](const auto& name) { return !is_entry(name); });
      for (const auto& name : names) {
        InLine entry = known_[path + "/" + name];
        if (entry.token == 0) {
          const auto node = eyes().get(path + "/" + name);
          if (!node) continue;  // it was removed meanwhile and never seen
          entry = {static_cast<std::uint32_t>(lock), node->created, client_in(node->data),
                   path + "/" + name, node->owner};
        }
        seen.emplace(entry.where, entry);
        all.push_back(std::move(entry));
      }
    }
    known_ = std::move(seen);
    return all;
  }
  bool remove(const InLine& entry) override {
    const std::lock_guard guard(mutex_);
    return eyes().remove(entry.where);
  }
  bool remove_directory(std::uint32_t lock) override {
    const std::lock_guard guard(mutex_);
    return eyes().remove(directory(lock));
  }
  bool end_session(const InLine& entry) override {
    return static_cast<bool>(servers_->end_session(entry.session));
  }

  std::vector<std::string> peers() const override { return {"Curator", "kazoo"}; }
  std::unique_ptr<Guest> peer_joins(std::uint32_t lock, const std::string& peer) override {
    const std::string name = peer == "Curator" ? "/_c_6e1d8f2c-4b7a-4c39-9d52-0a8e17b3f641-lock-"
                                               : "/6e1d8f2c4b7a4c399d520a8e17b3f641__lock__";
    return std::make_unique<ZkGuest>(servers_->hosts(), directory(lock) + name);
  }
  std::unique_ptr<Guest> no_entry(std::uint32_t lock) override {
    return std::make_unique<ZkGuest>(servers_->hosts(), directory(lock) + "/notes-");
  }
  std::optional<Stray> stray() override { return audit_.look(); }
  void rebuild(int i) override { servers_->rebuild(i); }

  std::vector<std::string> leftovers() override {
    const std::lock_guard guard(mutex_);
    eyes_.reset();  // its session is not a leftover
    std::vector<std::string> all;
    const int leader = servers_->leader();
    for (const auto& [session, paths] :
         test::parse_dump(servers_->four_letter(leader, "dump")).ephemerals) {
      for (const auto& path : paths) all.push_back("node " + path);
    }
    for (const auto session : servers_->sessions()) {
      all.push_back("session " + test::session_text(session));
    }
    for (int i = 0; i < size(); ++i) {
      const auto count = servers_->watch_count(i);
      if (count != 0) {
        all.push_back(std::to_string(count) + " watches at server " + std::to_string(i));
      }
    }
    return all;
  }

 private:
  test::ServerCluster& servers() const override { return *servers_; }
  std::string directory(std::uint32_t lock) const { return root() + "/" + lock_name(lock); }
  Eyes& eyes() {
    if (!eyes_) eyes_ = std::make_unique<Eyes>(servers_->hosts());
    return *eyes_;
  }
  static std::string number(const std::string& name) {
    return name.substr(name.size() - std::min<std::size_t>(name.size(), 10));
  }
  // The names of entries of baton, Curator and kazoo.
  static bool is_entry(const std::string& name) {
    const std::string_view head(name.data(), name.size() - number(name).size());
    return head.ends_with("-lock-") || head.ends_with("__lock__");
  }

  const std::unique_ptr<test::ZkEnsemble> servers_ = std::make_unique<test::ZkEnsemble>(options());
  ZkAudit audit_{*servers_};
  std::mutex mutex_;
  std::unique_ptr<Eyes> eyes_;
  std::map<std::string, InLine> known_;
};

}  // namespace

std::unique_ptr<Cluster> make_zk_cluster() { return std::make_unique<OverZk>(); }

}  // namespace baton::chaos
