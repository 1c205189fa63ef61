#include "support/etcd_store.h"

#include "support/base64.h"
#include "support/boot_clock.h"
#include "support/etcd_json.h"
#include "support/http.h"

#include <algorithm>
#include <sstream>
#include <thread>
#include <utility>

namespace baton::test {
using namespace etcd_json;
namespace {

constexpr std::chrono::milliseconds kLongest{30'000};
// Longer than an answer takes, and shorter than the time for which a server without a leader
// retries.
constexpr std::chrono::milliseconds kOneAsk{3'000};

// gRPC codes.
constexpr int kInvalid = 3;
constexpr int kNotFound = 5;
constexpr int kOutOfRange = 11;
constexpr int kUnauthenticated = 16;

// Cancelled, deadline exceeded, too many requests, unavailable (no leader, leader changed, timed
// out): these errors are retried.
bool passing(int code) { return code == 1 || code == 4 || code == 8 || code == 14; }

std::vector<std::string> split(const std::string& hosts) {
  std::vector<std::string> all;
  std::istringstream words(hosts);
  for (std::string host; std::getline(words, host, ',');) all.push_back(host);
  return all;
}

// A read that returns no data, but waits until this server has applied all committed changes.
const std::string kNothing = R"({"key":"AA==","count_only":true})";

}  // namespace

EtcdStore::EtcdStore(const std::string& hosts) : EtcdStore([all = split(hosts)] { return all; }) {}
EtcdStore::EtcdStore(std::function<std::vector<std::string>()> hosts) : hosts_(std::move(hosts)) {}

// ---- Asking ----

std::optional<std::string> EtcdStore::ask_once(const std::string& host, const Question& question,
                                               std::chrono::milliseconds limit) const {
  HttpQuestion http_question{question.path, question.json, {}};
  {
    const std::lock_guard lock(mutex_);
    if (!token_.empty()) http_question.headers.push_back("Authorization: " + token_);
  }
  const auto answer = http(host, http_question, limit);
  if (!answer) return std::nullopt;
  if (answer->status == 200) return answer->body;
  const Json json = Json::parse(answer->body, nullptr, false);
  const int code = json.is_object() ? static_cast<int>(number(json, "code")) : 14;
  if (passing(code)) return std::nullopt;
  throw EtcdError(code, "etcd: " + question.path + " at " + host + ": " + answer->body);
}

std::optional<std::string> EtcdStore::ask(const std::string& host, const Question& question,
                                          std::chrono::milliseconds limit) const {
  try {
    return ask_once(host, question, limit);
  } catch (const EtcdError& e) {
    // A restarted server does not know the token. A missing token, or a token made before a change
    // of users, is an invalid argument.
    if (e.code != kUnauthenticated && e.code != kInvalid) throw;
    if (!log_in(host, limit)) throw;
  }
  return ask_once(host, question, limit);
}

bool EtcdStore::log_in(const std::string& host, std::chrono::milliseconds limit) const {
  Json json{{"name", "root"}};
  {
    const std::lock_guard lock(mutex_);
    token_.clear();
    if (!password_) return false;
    json["password"] = *password_;
  }
  const auto answer = ask_once(host, {"/v3/auth/authenticate", json.dump()}, limit);
  if (!answer) return false;
  const std::lock_guard lock(mutex_);
  token_ = Json::parse(*answer).at("token");
  return true;
}

// The servers that know a leader. The leader comes first, because it needs the fewest other servers
// for an answer.
std::vector<std::string> EtcdStore::useful_hosts() const {
  std::vector<std::pair<EtcdStatus, std::string>> all;
  for (const auto& host : hosts_()) {
    const auto now = status(host, std::chrono::seconds(1));
    if (now && now->leader != 0) all.emplace_back(*now, host);
  }
  // An old leader that does not know the new leader comes after the new leader.
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.leads(), a.first.term) > std::pair(b.first.leads(), b.first.term);
  });
  std::vector<std::string> hosts;
  hosts.reserve(all.size());
  for (auto& [now, host] : all) hosts.push_back(std::move(host));
  return hosts;
}

std::string EtcdStore::ask_any(const std::vector<Question>& questions) {
  for (const Stopwatch watch; watch.elapsed() < kLongest;) {
    for (const auto& host : useful_hosts()) {
      std::optional<std::string> answer;
      for (const auto& question : questions) {
        answer = ask(host, question, kOneAsk);
        if (!answer) break;
      }
      if (answer) return *answer;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  throw std::runtime_error("etcd: no server answers " + questions.back().path);
}

std::optional<EtcdStatus> EtcdStore::status(const std::string& host,
                                            std::chrono::milliseconds limit) const {
  std::optional<std::string> answer;
  try {
    // etcd 3.5.16 answers without a token; 3.5.30 requires one.
    answer = ask(host, {"/v3/maintenance/status", "{}"}, limit);
  } catch (const EtcdError&) {
    return std::nullopt;
  }
  if (!answer) return std::nullopt;
  const Json json = Json::parse(*answer, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  EtcdStatus now;
  const Json& header = json.at("header");
  now.cluster = id(header, "cluster_id");
  now.member = id(header, "member_id");
  now.revision = number(header, "revision");
  now.leader = id(json, "leader");
  now.term = id(json, "raftTerm");
  now.committed = id(json, "raftIndex");
  now.applied = id(json, "raftAppliedIndex");
  now.version = json.value("version", std::string());
  now.size = number(json, "dbSize");
  return now;
}

bool EtcdStore::reads(const std::string& host, std::chrono::milliseconds limit) {
  return ask(host, {"/v3/kv/range", kNothing}, limit).has_value();
}

std::uint64_t EtcdStore::hash(const std::string& host) {
  const auto answer = ask(host, {"/v3/maintenance/hash", "{}"}, kOneAsk);
  if (!answer) throw std::runtime_error("etcd: " + host + " has no hash");
  return static_cast<std::uint64_t>(number(Json::parse(*answer), "hash"));
}

void EtcdStore::defragment(const std::string& host) {
  if (!ask(host, {"/v3/maintenance/defragment", "{}"}, kLongest)) {
    throw std::runtime_error("etcd: " + host + " does not defragment");
  }
}

void EtcdStore::move_leader(const std::string& from_host, std::uint64_t to_member) {
  const Json json{{"targetID", std::to_string(to_member)}};
  if (!ask(from_host, {"/v3/maintenance/transfer-leadership", json.dump()}, kLongest)) {
    throw std::runtime_error("etcd: " + from_host + " does not give up leading");
  }
}

// ---- Keys ----

std::vector<EtcdKey> EtcdStore::range(const std::string& key, const std::string& end,
                                      std::int64_t revision) {
  Json question = Json::parse(between(key, end));
  if (revision != 0) question["revision"] = std::to_string(revision);
  const Json json = Json::parse(ask_any({{"/v3/kv/range", question.dump()}}));
  std::vector<EtcdKey> all;
  for (const auto& kv : json.value("kvs", Json::array())) {
    all.push_back({bytes(kv, "key"), bytes(kv, "value"), number(kv, "create_revision"),
                   number(kv, "mod_revision"), number(kv, "version"), number(kv, "lease")});
  }
  return all;
}

std::vector<EtcdKey> EtcdStore::keys(const std::string& prefix, std::int64_t revision) {
  return range(start_of(prefix), end_of(prefix), revision);
}

std::optional<EtcdKey> EtcdStore::key(const std::string& name) {
  const auto found = range(name, "");
  if (found.empty()) return std::nullopt;
  return found.front();
}

std::int64_t EtcdStore::put(const std::string& key, const std::string& value, std::int64_t lease) {
  const Json json{
      {"key", to_base64(key)}, {"value", to_base64(value)}, {"lease", std::to_string(lease)}};
  return revision_of(Json::parse(ask_any({{"/v3/kv/put", json.dump()}})));
}

bool EtcdStore::remove_key(const std::string& key, std::int64_t created) {
  if (created == 0) {
    return number(Json::parse(ask_any({{"/v3/kv/deleterange", between(key, "")}})), "deleted") > 0;
  }
  const std::string name = to_base64(key);
  const Json json{{"compare",
                   {{{"key", name},
                     {"target", "CREATE"},
                     {"result", "EQUAL"},
                     {"create_revision", std::to_string(created)}}}},
                  {"success", {{{"request_delete_range", {{"key", name}}}}}}};
  return Json::parse(ask_any({{"/v3/kv/txn", json.dump()}})).value("succeeded", false);
}

std::int64_t EtcdStore::remove_all(const std::string& prefix) {
  const std::string which = between(start_of(prefix), end_of(prefix));
  return number(Json::parse(ask_any({{"/v3/kv/deleterange", which}})), "deleted");
}

std::int64_t EtcdStore::revision() {
  return revision_of(Json::parse(ask_any({{"/v3/kv/range", kNothing}})));
}

std::int64_t EtcdStore::compact() {
  const std::int64_t now = revision();
  const Json json{{"revision", std::to_string(now)}, {"physical", true}};
  try {
    ask_any({{"/v3/kv/compaction", json.dump()}});
  } catch (const EtcdError& e) {
    if (e.code != kOutOfRange) throw;  // already compacted
  }
  return now;
}

// ---- Leases ----

std::int64_t EtcdStore::grant(std::chrono::seconds ttl) {
  const Json json{{"TTL", std::to_string(ttl.count())}};
  return number(Json::parse(ask_any({{"/v3/lease/grant", json.dump()}})), "ID");
}

bool EtcdStore::revoke(std::int64_t lease) {
  try {
    ask_any({{"/v3/lease/revoke", Json{{"ID", std::to_string(lease)}}.dump()}});
  } catch (const EtcdError& e) {
    if (e.code != kNotFound) throw;
    return false;
  }
  return true;
}

std::set<std::int64_t> EtcdStore::leases() {
  // A server lists only the leases that it knows. The read makes it up to date first.
  const Json json = Json::parse(ask_any({{"/v3/kv/range", kNothing}, {"/v3/lease/leases", "{}"}}));
  std::set<std::int64_t> all;
  for (const auto& each : json.value("leases", Json::array())) all.insert(number(each, "ID"));
  return all;
}

std::optional<EtcdLease> EtcdStore::lease(std::int64_t lease) {
  const Json question{{"ID", std::to_string(lease)}, {"keys", true}};
  const Json json =
      Json::parse(ask_any({{"/v3/kv/range", kNothing}, {"/v3/lease/timetolive", question.dump()}}));
  EtcdLease found{number(json, "TTL"), number(json, "grantedTTL"), {}};
  if (found.ttl < 0) return std::nullopt;
  for (const auto& key : json.value("keys", Json::array())) {
    found.keys.insert(from_base64(key.get<std::string>()));
  }
  return found;
}

}  // namespace baton::test
