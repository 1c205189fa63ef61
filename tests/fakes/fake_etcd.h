// Simulates an etcd cluster in memory, on virtual time: revisions, leases, watches, and members
// that lag behind. A client reaches it through FakeEtcdWire (fake_etcd_wire.h).
#pragma once

#include "common/base/loop.h"
#include "etcd/baton_etcd_wire.pb.h"
#include "etcd/transport.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace baton::etcd {

struct FakeMember {
  std::uint64_t cluster = 7;
  bool no_leader = false;  // refuses requests that need a leader
  // wrongly believes that it leads: answers keepalives, but extends no lease
  bool believes = false;
  bool lags = false;  // applies new revisions only for its own writes and linearizable reads
  std::int64_t applied = 1;
};

// Receives what the server sends on a stream. The wire delivers it to the client.
class FakeHearer {
 public:
  virtual ~FakeHearer() = default;
  virtual void hear(const Message& response) = 0;
};

class FakeEtcd {
 public:
  explicit FakeEtcd(Loop& loop, std::size_t members = 1) : members_(members), loop_(loop) {}
  ~FakeEtcd();

  // ---- requests to a member, answered at once
  CallResult serve(std::size_t member, Call call, const Message& request, Message& response,
                   const CallOptions& options);
  // Returns false if the member does not answer because it has no leader.
  bool keep_alive(std::size_t member, const etcdpb::LeaseKeepAliveRequest& request,
                  etcdpb::LeaseKeepAliveResponse& response);
  // Returns the error with which the server ends a stream after a keepalive with this token, or
  // nullopt if it answers the keepalive.
  std::optional<CallResult> refuse_keep_alive(const std::string& token);
  void watch(std::size_t member, FakeHearer* stream, const std::string& token,
             const etcdpb::WatchRequest& request);
  void stream_gone(FakeHearer* stream);

  // ---- actions of an operator
  std::int64_t put(const std::string& key, std::int64_t lease = 0, const std::string& value = {});
  bool remove(const std::string& key);
  void revoke(std::int64_t lease);
  void compact(std::int64_t revision);   // cancels the watches that are behind `revision`
  void set_back(std::int64_t revision);  // restores the store from a backup
  void catch_up();                       // ends the lag of all members
  void lag(std::size_t member);
  void expire_tokens() { tokens_.clear(); }
  void require_users() { auth_ = true; }

  // ---- the leader: leases expire only while there is one
  std::size_t leader() const { return leader_; }
  bool led() const { return led_; }
  void depose() { led_ = false; }
  // Every lease starts again and lasts `extra` longer than its TTL, as in etcd (lessor.Promote). A
  // leader that was cut off may have renewed leases while it still believed that it led.
  void elect(std::size_t member, Nanos extra);

  std::int64_t revision() const { return revision_; }
  std::vector<std::string> keys(const std::string& prefix = "") const;
  const etcdpb::KeyValue* find(const std::string& key) const;
  std::vector<std::int64_t> leases() const;
  bool alive(std::int64_t lease) const { return leases_.contains(lease); }
  Time expires(std::int64_t lease) const { return leases_.at(lease).expires; }
  std::size_t watchers() const { return watchers_.size(); }
  std::string any_watched() const { return watchers_.empty() ? "" : watchers_.front()->key; }
  FakeMember& member(std::size_t i) { return members_.at(i); }
  std::size_t members() const { return members_.size(); }
  Loop& loop() { return loop_; }

  int authentications = 0;
  std::uint64_t told = 0;             // watch responses with events
  bool names_refused_watches = true;  // false: answer with watch id -1, as newer servers
  std::string refusal = "etcdserver: permission denied";
  // Servers from 3.4.42, 3.5.28 and 3.6.9 on check the token of every keepalive.
  bool checks_keepalives = true;
  std::optional<CallResult> keepalive_refusal{};  // nullopt: the error depends on the token
  int refused_keepalives = 0;
  std::int64_t keepalive_bonus = 0;   // seconds that a keepalive answer adds to the granted TTL
  std::function<bool()> loses_watch;  // called for each new watch; true: it reports no events
  // called for each watch response with events; true: send it twice
  std::function<bool()> doubles_event;

 private:
  struct Lease {
    std::int64_t ttl = 0;
    Time expires{};
    TimerId timer = TimerId::none;
  };
  struct Watcher {
    std::size_t member = 0;
    FakeHearer* stream = nullptr;
    std::int64_t id = 0;
    std::string key;
    std::int64_t next = 0;
    bool puts = true;
    bool deletes = true;
    bool mute = false;
  };
  using Keys = std::map<std::string, etcdpb::KeyValue>;

  void fill(std::size_t member, etcdpb::ResponseHeader& header) const;
  Keys at(std::int64_t revision) const;
  static void range(const Keys& keys, const etcdpb::RangeRequest& request,
                    etcdpb::RangeResponse& response);
  CallResult range(std::size_t member, const etcdpb::RangeRequest& request,
                   etcdpb::RangeResponse& response);
  CallResult txn(std::size_t member, const etcdpb::TxnRequest& request,
                 etcdpb::TxnResponse& response);
  bool holds(const etcdpb::Compare& compare) const;
  void write(const std::string& key, const std::string& value, std::int64_t lease);
  bool erase(const std::string& key);  // at revision_ + 1, which wrote() completes
  void wrote();                        // completes a revision; members that do not lag apply it
  void pass(std::size_t member);       // the member applies all revisions
  void follow(Watcher& watcher);
  void extend(std::int64_t id, Nanos extra = {});
  void cancel_compacted(const Watcher& watcher);

  std::vector<FakeMember> members_;
  Loop& loop_;
  Keys keys_;
  std::vector<etcdpb::Event> history_;
  std::int64_t revision_ = 1;
  std::int64_t compacted_ = 0;
  std::map<std::int64_t, Lease> leases_;
  std::int64_t next_lease_ = 0x1000;
  std::vector<std::unique_ptr<Watcher>> watchers_;
  std::size_t leader_ = 0;
  bool led_ = true;
  bool auth_ = false;
  std::set<std::string> tokens_;
};

}  // namespace baton::etcd
