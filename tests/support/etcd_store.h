// What an etcd cluster holds, and changes to it behind a client's back, without a client library.
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
  std::int64_t ttl = 0;      // s that are left
  std::int64_t granted = 0;  // s
  std::set<std::string> keys;
};

// What a server says of itself; it needs no leader for that.
struct EtcdStatus {
  std::uint64_t cluster = 0;
  std::uint64_t member = 0;
  std::uint64_t leader = 0;  // 0: it knows none
  std::uint64_t term = 0;
  std::uint64_t committed = 0;  // index in the log of raft
  std::uint64_t applied = 0;
  std::int64_t revision = 0;  // of its own copy
  std::string version;        // "3.4.23"
  std::int64_t size = 0;      // of the file, bytes

  bool leads() const { return leader != 0 && leader == member; }
};

// An answer that says no.
struct EtcdError : std::runtime_error {
  EtcdError(int status, const std::string& text) : std::runtime_error(text), code(status) {}
  int code;  // of gRPC: 3 invalid argument, 5 not found, 7 permission denied ...
};

// Asks over the JSON gateway: plain HTTP, one connection a question. Each question counts as a call
// in the metrics of the server that is asked.
//
// Each call asks the leader, then one server after the other until one answers, for 30 s; then, as
// for an answer that is no, it throws. What changes something may therefore be done twice when
// servers fail meanwhile. Reads see all that was written before, by whomever. All calls from any
// thread.
class EtcdStore {
 public:
  explicit EtcdStore(const std::string& hosts);  // "127.0.0.1:2379,..."
  // Called for each attempt: who can be asked.
  explicit EtcdStore(std::function<std::vector<std::string>()> hosts);
  EtcdStore(const EtcdStore&) = delete;
  EtcdStore& operator=(const EtcdStore&) = delete;

  // ---- Keys ----

  // In the order of their names; as they are, or as they were at a revision.
  std::vector<EtcdKey> keys(const std::string& prefix = "", std::int64_t revision = 0);
  std::optional<EtcdKey> key(const std::string& name);
  std::int64_t put(const std::string& key, const std::string& value, std::int64_t lease = 0);
  bool remove_key(const std::string& key);  // false: it was not there
  std::int64_t remove_all(const std::string& prefix);
  std::int64_t revision();
  // Forgets all that was before the present revision, and returns that when it is off the disk.
  std::int64_t compact();

  // ---- Leases ----

  std::int64_t grant(std::chrono::seconds ttl);
  bool revoke(std::int64_t lease);  // with its keys; false: it was not there
  std::set<std::int64_t> leases();
  std::optional<EtcdLease> lease(std::int64_t id);

  // ---- Users ----

  // Makes root with this password, and from then on asks as root; also if others have made it so.
  void enable_auth(const std::string& root_password);
  // One who may read and write below the prefix, or only read. Before or after enable_auth().
  void add_user(const std::string& name, const std::string& password, const std::string& prefix,
                bool read_only = false);
  // This key too, for a user that was added.
  void allow_reading(const std::string& name, const std::string& key);
  void change_password(const std::string& name, const std::string& password);
  void disable_auth();

  // ---- One server ----

  // nullopt: no answer.
  std::optional<EtcdStatus> status(const std::string& host,
                                   std::chrono::milliseconds limit = std::chrono::seconds(2)) const;
  // It takes part in the cluster: what it reads is what the others have agreed upon.
  bool reads(const std::string& host, std::chrono::milliseconds limit = std::chrono::seconds(1));
  // Of all keys with their history: the same at servers that have applied the same.
  std::uint64_t hash(const std::string& host);
  // Frees what compact() left in its file. It answers nobody meanwhile.
  void defragment(const std::string& host);
  // The leader gives up in favour of this member.
  void move_leader(const std::string& from_host, std::uint64_t to_member);

 private:
  struct Question {
    std::string path;
    std::string json;
  };
  // JSON. nullopt: no answer, or one that may be different at another server or later.
  std::optional<std::string> ask(const std::string& host, const Question& question,
                                 std::chrono::milliseconds limit) const;
  std::vector<std::string> useful_hosts() const;
  // All of them to one server; the last answer.
  std::string ask_any(const std::vector<Question>& questions);
  std::optional<std::string> ask_once(const std::string& host, const Question& question,
                                      std::chrono::milliseconds limit) const;
  // The right to ask as root, if that is needed. False: not to be had here and now.
  bool log_in(const std::string& host, std::chrono::milliseconds limit) const;
  std::vector<EtcdKey> range(const std::string& key, const std::string& end,
                             std::int64_t revision = 0);

  const std::function<std::vector<std::string>()> hosts_;
  mutable std::mutex mutex_;
  std::optional<std::string> password_;  // of root
  mutable std::string token_;
};

}  // namespace baton::test
