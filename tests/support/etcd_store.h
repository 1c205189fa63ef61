// Reads and changes the content of an etcd cluster without a client library, so that tests can
// check and disturb a client from outside.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace baton::test {

struct EtcdKey {
  std::string key;
  std::string value;
  std::int64_t create_revision = 0;
  std::int64_t mod_revision = 0;
  std::int64_t version = 0;
  std::int64_t lease = 0;  // 0: none
};

struct EtcdLease {
  std::int64_t ttl = 0;      // seconds left
  std::int64_t granted = 0;  // seconds
  std::set<std::string> keys;
};

// The status of a server. The server needs no leader to answer.
struct EtcdStatus {
  std::uint64_t cluster = 0;
  std::uint64_t member = 0;
  std::uint64_t leader = 0;  // 0: it knows no leader
  std::uint64_t term = 0;
  std::uint64_t committed = 0;  // index in the raft log
  std::uint64_t applied = 0;
  std::int64_t revision = 0;  // of the server's own copy
  std::string version;        // "3.4.23"
  std::int64_t size = 0;      // of the database file, in bytes

  bool leads() const { return leader != 0 && leader == member; }
};

// An error answer.
struct EtcdError : std::runtime_error {
  EtcdError(int status, const std::string& text) : std::runtime_error(text), code(status) {}
  int code;  // gRPC code: 3 invalid argument, 5 not found, 7 permission denied ...
};

// Sends requests through the JSON gateway: plain HTTP, one connection for each request. Each
// request counts as a call in the metrics of its server.
//
// Each call asks the leader first, then one server after the other until a server answers, for at
// most 30 s. Without an answer, or after an error answer, it throws. If servers fail meanwhile, a
// change may be made twice. Reads are linearizable. Any thread may make any call.
class EtcdStore {
 public:
  explicit EtcdStore(const std::string& hosts);  // "127.0.0.1:2379,..."
  // `hosts` is called for each attempt and returns the servers to ask.
  explicit EtcdStore(std::function<std::vector<std::string>()> hosts);
  EtcdStore(const EtcdStore&) = delete;
  EtcdStore& operator=(const EtcdStore&) = delete;

  // ---- Keys ----

  // The keys in the order of their names, as they are now or as they were at a revision.
  std::vector<EtcdKey> keys(const std::string& prefix = "", std::int64_t revision = 0);
  std::optional<EtcdKey> key(const std::string& name);
  std::int64_t put(const std::string& key, const std::string& value, std::int64_t lease = 0);
  // created: removes only the key with this create revision; 0: whatever its revision. False: there
  // was no such key.
  bool remove_key(const std::string& key, std::int64_t created = 0);
  std::int64_t remove_all(const std::string& prefix);
  std::int64_t revision();
  // Compacts the history before the current revision. Returns that revision when the file no longer
  // has the older data.
  std::int64_t compact();

  // ---- Leases ----

  std::int64_t grant(std::chrono::seconds ttl);
  bool revoke(std::int64_t lease);  // removes its keys, too; false: there was no such lease
  std::set<std::int64_t> leases();
  std::optional<EtcdLease> lease(std::int64_t id);

  // ---- Users ----

  // Creates root with this password and enables authentication. From then on this object asks as
  // root.
  void enable_auth(const std::string& root_password);
  // Adds a user that may read and write keys below the prefix, or only read them. Works before and
  // after enable_auth().
  void add_user(const std::string& name, const std::string& password, const std::string& prefix,
                bool read_only = false);
  // Allows an added user to read one more key.
  void allow_reading(const std::string& name, const std::string& key);
  void change_password(const std::string& name, const std::string& password);
  void disable_auth();

  // ---- One server ----

  // nullopt: no answer.
  std::optional<EtcdStatus> status(const std::string& host,
                                   std::chrono::milliseconds limit = std::chrono::seconds(2)) const;
  // Whether the server answers a linearizable read.
  bool reads(const std::string& host, std::chrono::milliseconds limit = std::chrono::seconds(1));
  // A hash of all keys with their history: equal at servers that have applied the same changes.
  std::uint64_t hash(const std::string& host);
  // Frees the space in the file that compact() left. The server answers no request meanwhile.
  void defragment(const std::string& host);
  // Moves the leadership to this member.
  void move_leader(const std::string& from_host, std::uint64_t to_member);

 private:
  struct Question {
    std::string path;
    std::string json;
  };
  // Returns JSON. nullopt: no answer, or an error that a retry or another server may not have.
  std::optional<std::string> ask(const std::string& host, const Question& question,
                                 std::chrono::milliseconds limit) const;
  std::vector<std::string> useful_hosts() const;
  // Sends all questions to one server and returns the last answer.
  std::string ask_any(const std::vector<Question>& questions);
  std::optional<std::string> ask_once(const std::string& host, const Question& question,
                                      std::chrono::milliseconds limit) const;
  // Gets a token of root. False: no password is known, or the server did not answer.
  bool log_in(const std::string& host, std::chrono::milliseconds limit) const;
  std::vector<EtcdKey> range(const std::string& key, const std::string& end,
                             std::int64_t revision = 0);

  const std::function<std::vector<std::string>()> hosts_;
  mutable std::mutex mutex_;
  std::optional<std::string> password_;  // password of root
  mutable std::string token_;
};

}  // namespace baton::test
