// An etcd cluster in memory, on virtual time: revisions, leases, watches, members that lag behind.
// FakeEtcdWire (fake_etcd_wire.h) is how one client reaches it.
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
  bool no_leader = false;  // refuses what needs one
  bool believes = false;   // that it leads, although it does not: renews leases all alone
  bool lags = false;       // stays at `applied`, unless a read or write of the cluster passes it
  std::int64_t applied = 1;
};

// What a stream hears from the server; the wire carries it on.
class FakeHearer {
 public:
  virtual ~FakeHearer() = default;
  virtual void hear(const Message& response) = 0;
};

class FakeEtcd {
 public:
  explicit FakeEtcd(Loop& loop, std::size_t members = 1) : members_(members), loop_(loop) {}
  ~FakeEtcd();

  // ---- what a member is asked, now
  CallResult serve(std::size_t member, Call call, const Message& request, Message& response,
                   const CallOptions& options);
  // False: there is nobody to ask, no answer comes.
  bool keep_alive(std::size_t member, const etcdpb::LeaseKeepAliveRequest& request,
                  etcdpb::LeaseKeepAliveResponse& response);
  // How a stream ends on which a keepalive was sent with this token; nothing: it is answered.
  std::optional<CallResult> refuse_keep_alive(const std::string& token);
  void watch(std::size_t member, FakeHearer* stream, const std::string& token,
             const etcdpb::WatchRequest& request);
  void stream_gone(FakeHearer* stream);

  // ---- by the hand of an operator
  std::int64_t put(const std::string& key, std::int64_t lease = 0, const std::string& value = {});
  bool remove(const std::string& key);
  void revoke(std::int64_t lease);
  void compact(std::int64_t revision);   // watches that are not that far are cancelled
  void set_back(std::int64_t revision);  // the store is restored from a backup
  void catch_up();                       // members that lag
  void lag(std::size_t member);
  void expire_tokens() { tokens_.clear(); }
  void require_users() { auth_ = true; }

  // ---- who leads: only a leader ends leases
  std::size_t leader() const { return leader_; }
  bool led() const { return led_; }
  void depose() { led_ = false; }
  // Every lease begins anew, and a little longer (etcd's Promote): a leader that was cut off may
  // have renewed some for as long as it believed in itself.
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
  std::uint64_t told = 0;             // how often a watch has
  bool names_refused_watches = true;  // newer servers do not
  std::string refusal = "etcdserver: permission denied";
  // Servers from 3.4.42, 3.5.28 and 3.6.9 on check the token of every keepalive.
  bool checks_keepalives = true;
  std::optional<CallResult> keepalive_refusal{};  // none: what the token deserves
  int refused_keepalives = 0;
  std::int64_t keepalive_bonus = 0;     // answers promise more than was granted
  std::function<bool()> loses_watch;    // asked for every new watch: it never tells
  std::function<bool()> doubles_event;  // asked whenever a watch tells: it does so twice

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
  bool erase(const std::string& key);  // at the revision that is being made
  void wrote();                        // everybody sees it
  void pass(std::size_t member);       // it knows all there is
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
