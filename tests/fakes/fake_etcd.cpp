#include "fakes/fake_etcd.h"

#include <algorithm>

namespace baton::etcd {

using std::chrono::seconds;

namespace {
const CallResult kFine{};
const CallResult kNoLease{5, "etcdserver: requested lease not found"};
const CallResult kCompacted{11, "etcdserver: mvcc: required revision has been compacted"};
const CallResult kFuture{11, "etcdserver: mvcc: required revision is a future revision"};

CallResult bad_token(const std::string& token) {
  return token.empty() ? CallResult{3, "etcdserver: user name is empty"}
                       : CallResult{16, "etcdserver: invalid auth token"};
}
}  // namespace

FakeEtcd::~FakeEtcd() {
  for (const auto& [id, lease] : leases_) loop_.cancel(lease.timer);
}

void FakeEtcd::fill(std::size_t member, etcdpb::ResponseHeader& header) const {
  header.set_cluster_id(members_[member].cluster);
  header.set_member_id(member + 1);
  header.set_revision(members_[member].applied);
}

// ---- calls

CallResult FakeEtcd::serve(std::size_t i, Call call, const Message& request, Message& response,
                           const CallOptions& options) {
  if ((members_.at(i).no_leader || !led_) && (options.require_leader || call == Call::txn)) {
    return {14, "etcdserver: no leader"};
  }
  const bool open = call == Call::authenticate || call == Call::status;
  if (auth_ && !open && !tokens_.contains(options.token)) return bad_token(options.token);
  switch (call) {
    case Call::range: {
      const auto& range_request = static_cast<const etcdpb::RangeRequest&>(request);
      if (!range_request.serializable()) pass(i);
      return range(i, range_request, static_cast<etcdpb::RangeResponse&>(response));
    }
    case Call::txn: {
      return txn(i, static_cast<const etcdpb::TxnRequest&>(request),
                 static_cast<etcdpb::TxnResponse&>(response));
    }
    case Call::lease_grant: {
      auto& answer = static_cast<etcdpb::LeaseGrantResponse&>(response);
      const std::int64_t id = next_lease_++;
      leases_[id].ttl = static_cast<const etcdpb::LeaseGrantRequest&>(request).ttl();
      extend(id);
      pass(i);
      fill(i, *answer.mutable_header());
      answer.set_id(id);
      answer.set_ttl(leases_[id].ttl);
      return kFine;
    }
    case Call::lease_revoke: {
      const auto id = static_cast<const etcdpb::LeaseRevokeRequest&>(request).id();
      if (!leases_.contains(id)) return kNoLease;
      revoke(id);
      pass(i);
      fill(i, *static_cast<etcdpb::LeaseRevokeResponse&>(response).mutable_header());
      return kFine;
    }
    case Call::lease_time_to_live: {
      const auto& asked = static_cast<const etcdpb::LeaseTimeToLiveRequest&>(request);
      auto& answer = static_cast<etcdpb::LeaseTimeToLiveResponse&>(response);
      fill(i, *answer.mutable_header());
      answer.set_id(asked.id());
      const auto found = leases_.find(asked.id());
      answer.set_ttl(-1);
      if (found == leases_.end()) return kFine;
      answer.set_ttl(
          std::chrono::duration_cast<seconds>(found->second.expires - loop_.now()).count() + 1);
      answer.set_grantedttl(found->second.ttl);
      for (const auto& [key, kv] : keys_) {
        if (asked.keys() && kv.lease() == asked.id()) answer.add_keys(key);
      }
      return kFine;
    }
    case Call::authenticate: {
      if (!auth_) return {9, "etcdserver: authentication is not enabled"};
      if (static_cast<const etcdpb::AuthenticateRequest&>(request).password() != "secret") {
        return {3, "etcdserver: authentication failed, invalid user ID or password"};
      }
      auto& answer = static_cast<etcdpb::AuthenticateResponse&>(response);
      fill(i, *answer.mutable_header());
      answer.set_token("token" + std::to_string(++authentications));
      tokens_.insert(answer.token());
      return kFine;
    }
    case Call::status: {
      auto& answer = static_cast<etcdpb::StatusResponse&>(response);
      fill(i, *answer.mutable_header());
      answer.set_version("3.5.0");
      return kFine;
    }
  }
  return {12, "unimplemented"};
}

// ---- keys

FakeEtcd::Keys FakeEtcd::at(std::int64_t revision) const {
  if (revision == revision_) return keys_;
  Keys keys;
  for (const auto& event : history_) {
    if (event.kv().mod_revision() > revision) break;
    if (event.type() == etcdpb::Event::DELETE) {
      keys.erase(event.kv().key());
    } else {
      keys[event.kv().key()] = event.kv();
    }
  }
  return keys;
}

void FakeEtcd::range(const Keys& keys, const etcdpb::RangeRequest& request,
                     etcdpb::RangeResponse& response) {
  std::vector<etcdpb::KeyValue> found;
  for (const auto& [key, kv] : keys) {
    const auto& end = request.range_end();
    const bool in = end.empty()
                        ? key == request.key()
                        : key >= request.key() && (end == std::string(1, '\0') || key < end);
    if (in) found.push_back(kv);
  }
  // etcd, too, counts before it filters
  response.set_count(static_cast<std::int64_t>(found.size()));
  std::erase_if(found, [&](const auto& kv) {
    return request.max_create_revision() != 0 &&
           kv.create_revision() > request.max_create_revision();
  });
  if (request.sort_target() == etcdpb::RangeRequest::CREATE) {
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
      return a.create_revision() > b.create_revision();
    });
  }
  if (request.limit() > 0 && static_cast<std::int64_t>(found.size()) > request.limit()) {
    found.resize(static_cast<std::size_t>(request.limit()));
    response.set_more(true);
  }
  for (auto& kv : found) {
    if (request.keys_only()) kv.clear_value();
    *response.add_kvs() = kv;
  }
}

CallResult FakeEtcd::range(std::size_t i, const etcdpb::RangeRequest& request,
                           etcdpb::RangeResponse& response) {
  const std::int64_t applied = members_[i].applied;
  if (request.revision() > applied) return kFuture;
  if (request.revision() != 0 && request.revision() < compacted_) return kCompacted;
  fill(i, *response.mutable_header());
  const std::int64_t wanted = request.revision() == 0 ? applied : request.revision();
  if (wanted == revision_) {
    range(keys_, request, response);
  } else {
    range(at(wanted), request, response);
  }
  return kFine;
}

bool FakeEtcd::holds(const etcdpb::Compare& compare) const {
  const auto* const kv = find(compare.key());
  if (compare.target() == etcdpb::Compare::LEASE) {
    return (kv == nullptr ? 0 : kv->lease()) == compare.lease();
  }
  return (kv == nullptr ? 0 : kv->create_revision()) == compare.create_revision();
}

CallResult FakeEtcd::txn(std::size_t i, const etcdpb::TxnRequest& request,
                         etcdpb::TxnResponse& response) {
  bool yes = true;
  for (const auto& compare : request.compare()) yes = yes && holds(compare);
  const auto& operations = yes ? request.success() : request.failure();
  for (const auto& op : operations) {
    if (op.has_request_put() && !leases_.contains(op.request_put().lease())) return kNoLease;
  }
  response.set_succeeded(yes);
  const std::size_t before = history_.size();
  for (const auto& op : operations) {
    auto& answer = *response.add_responses();
    if (op.has_request_put()) {
      write(op.request_put().key(), op.request_put().value(), op.request_put().lease());
      answer.mutable_response_put();
    } else if (op.has_request_delete_range()) {
      const bool was = erase(op.request_delete_range().key());
      answer.mutable_response_delete_range()->set_deleted(was ? 1 : 0);
    } else {
      range(keys_, op.request_range(), *answer.mutable_response_range());
    }
  }
  if (history_.size() != before) wrote();
  pass(i);
  fill(i, *response.mutable_header());
  return kFine;
}

void FakeEtcd::write(const std::string& key, const std::string& value, std::int64_t lease) {
  auto& kv = keys_[key];
  kv.set_key(key);
  kv.set_value(value);
  kv.set_lease(lease);
  kv.set_mod_revision(revision_ + 1);
  if (kv.create_revision() == 0) kv.set_create_revision(revision_ + 1);
  etcdpb::Event event;
  *event.mutable_kv() = kv;
  history_.push_back(event);
}

bool FakeEtcd::erase(const std::string& key) {
  if (keys_.erase(key) == 0) return false;
  etcdpb::Event event;
  event.set_type(etcdpb::Event::DELETE);
  event.mutable_kv()->set_key(key);
  event.mutable_kv()->set_mod_revision(revision_ + 1);
  history_.push_back(event);
  return true;
}

void FakeEtcd::pass(std::size_t i) {
  if (members_[i].applied == revision_) return;
  members_[i].applied = revision_;
  for (const auto& watcher : watchers_) follow(*watcher);
}

void FakeEtcd::wrote() {
  ++revision_;
  for (auto& member : members_) {
    if (!member.lags) member.applied = revision_;
  }
  for (const auto& watcher : watchers_) follow(*watcher);
}

// ---- leases

void FakeEtcd::extend(std::int64_t id, Nanos extra) {
  Lease& lease = leases_.at(id);
  loop_.cancel(lease.timer);
  lease.expires = loop_.now() + seconds(lease.ttl) + extra;
  lease.timer = loop_.at(lease.expires, [this, id] {
    if (led_) revoke(id);  // without a leader no lease ends; elect() restarts the timers
  });
}

void FakeEtcd::elect(std::size_t member, Nanos extra) {
  leader_ = member;
  led_ = true;
  for (const auto id : leases()) extend(id, extra);
}

void FakeEtcd::revoke(std::int64_t id) {
  const auto found = leases_.find(id);
  if (found == leases_.end()) return;
  loop_.cancel(found->second.timer);
  leases_.erase(found);
  std::vector<std::string> gone;
  for (const auto& [key, kv] : keys_) {
    if (kv.lease() == id) gone.push_back(key);
  }
  for (const auto& key : gone) erase(key);
  if (!gone.empty()) wrote();
}

std::optional<CallResult> FakeEtcd::refuse_keep_alive(const std::string& token) {
  if (!auth_ || !checks_keepalives || tokens_.contains(token)) return std::nullopt;
  ++refused_keepalives;
  return keepalive_refusal ? keepalive_refusal : bad_token(token);
}

bool FakeEtcd::keep_alive(std::size_t i, const etcdpb::LeaseKeepAliveRequest& request,
                          etcdpb::LeaseKeepAliveResponse& response) {
  const bool alone = members_[i].believes && i != leader_;
  if (!alone && (members_[i].no_leader || !led_)) return false;
  fill(i, *response.mutable_header());
  response.set_id(request.id());
  response.set_ttl(0);
  const auto found = leases_.find(request.id());
  if (found == leases_.end()) return true;
  if (!alone) extend(request.id());
  response.set_ttl(found->second.ttl + keepalive_bonus);
  return true;
}

// ---- operators

std::int64_t FakeEtcd::put(const std::string& key, std::int64_t lease, const std::string& value) {
  write(key, value, lease);
  wrote();
  return find(key)->create_revision();
}

bool FakeEtcd::remove(const std::string& key) {
  if (!erase(key)) return false;
  wrote();
  return true;
}

void FakeEtcd::set_back(std::int64_t revision) {
  keys_ = at(revision);
  std::erase_if(history_, [&](const auto& e) { return e.kv().mod_revision() > revision; });
  revision_ = revision;
  for (auto& member : members_) member.applied = revision;
  // The backup also contains leases. A lease that has ended since then starts again.
  for (const auto& [key, kv] : keys_) {
    if (kv.lease() == 0 || leases_.contains(kv.lease())) continue;
    leases_[kv.lease()].ttl = 5;
    extend(kv.lease());
  }
}

void FakeEtcd::lag(std::size_t i) { members_.at(i).lags = true; }

void FakeEtcd::catch_up() {
  for (auto& member : members_) {
    member.lags = false;
    member.applied = revision_;
  }
  for (const auto& watcher : watchers_) follow(*watcher);
}

std::vector<std::string> FakeEtcd::keys(const std::string& prefix) const {
  std::vector<std::string> found;
  for (const auto& [key, kv] : keys_) {
    if (key.starts_with(prefix)) found.push_back(key);
  }
  return found;
}

const etcdpb::KeyValue* FakeEtcd::find(const std::string& key) const {
  const auto found = keys_.find(key);
  return found == keys_.end() ? nullptr : &found->second;
}

std::vector<std::int64_t> FakeEtcd::leases() const {
  std::vector<std::int64_t> ids;
  for (const auto& [id, lease] : leases_) ids.push_back(id);
  return ids;
}

}  // namespace baton::etcd
