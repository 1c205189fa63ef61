// Watches: watches single keys, on a few shared streams.
#pragma once

#include "common/base/jitter.h"
#include "common/base/lifetime.h"
#include "common/base/loop.h"
#include "common/seam/session.h"
#include "etcd/link.h"
#include "etcd/watch_state.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

namespace baton::etcd {

// Why a watch fired. If `pinned`, a read at `revision` from `endpoint` alone shows that the key is
// gone, because this member has delivered every event up to that revision without a gap. Otherwise
// the caller must ask the cluster.
struct WatchNews {
  bool gone = false;  // the key with this create revision is certainly deleted
  bool pinned = false;
  std::int64_t revision = 0;
  std::size_t endpoint = 0;
};
using WatchNewsHandler = UniqueFunction<void(const WatchNews&)>;
// Called when the key was put, with its new create revision.
using PutHandler = UniqueFunction<void(std::int64_t)>;

// The watch of a predecessor's key starts at the current revision, followed by one look, because
// etcd serves a watch that starts at an old revision only every 100 ms. Where this delay does no
// harm (own keys, and watches that resume after a stream broke), the watch starts right after the
// last known revision, and needs no look.
class Watches {
 public:
  static constexpr std::size_t kPerStream = 1000;

  Watches(Loop& loop, Link& link);
  ~Watches();
  Watches(const Watches&) = delete;
  Watches& operator=(const Watches&) = delete;

  struct Want {
    std::string key;
    std::int64_t created = 0;  // create revision, because names are used again
    std::int64_t known = 0;    // the key existed at this revision
    bool from_known = false;   // start the watch there, without a look
    Nanos delay{};             // start later: most waits end before
  };
  // Calls the handler at most once, and never inside the call. Then the watch is over.
  WatchId watch(Want want, WatchNewsHandler handler);
  void unwatch(WatchId id);
  // Reports every put of a key that should not exist, from after this revision until unwatch().
  WatchId watch_puts(const std::string& key, std::int64_t after, PutHandler handler);

  // This client has deleted the key, and the store has confirmed it: fire its watch without waiting
  // for the event.
  void deleted(const std::string& key, std::int64_t created, std::int64_t revision,
               std::size_t endpoint);
  // The link has left this endpoint: reopen its streams at the current endpoint.
  void leave(std::size_t endpoint);

  std::size_t size() const noexcept { return watches_.size(); }
  std::size_t streams() const noexcept { return lanes_.size(); }

 private:
  class Lane;
  struct Watch {
    WatchState state() const noexcept { return state_; }
    Continuity continuity() const noexcept { return continuity_; }
    // An event that cannot happen changes nothing.
    void on(WatchStep step) noexcept;

    std::int64_t id = 0;  // the watch id in etcd's protocol
    Want want;
    PutHandler on_put;
    std::vector<std::pair<WatchId, WatchNewsHandler>> handlers;
    Lane* lane = nullptr;           // while starting, checking or live
    TimerId timer = TimerId::none;  // while delayed or refused
    std::int64_t covered = 0;       // events after this revision are delivered; 0: none are
    std::int64_t looking = 0;       // the look under way is for a watch that started here

   private:
    WatchState state_ = WatchState::delayed;
    Continuity continuity_ = Continuity::never_accepted;
  };
  using WatchPtr = std::shared_ptr<Watch>;

  void begin(const WatchPtr& watch);
  void join_lane(const WatchPtr& watch);
  void created(const WatchPtr& watch, std::int64_t revision);
  void look(const WatchPtr& watch, std::int64_t revision, bool pinned);
  void event(const WatchPtr& watch, const etcdpb::Event& event);
  void fire(const WatchPtr& watch, const WatchNews& news);
  void forget(const WatchPtr& watch);
  void pause(const WatchPtr& watch);
  void begin_anew(const WatchPtr& watch);
  WatchPtr find(std::int64_t id) const;

  Loop& loop_;
  Link& link_;
  std::int64_t next_ = 1;
  std::map<std::int64_t, WatchPtr> watches_;                   // by id in etcd's protocol
  std::unordered_map<std::string, WatchPtr> by_key_;           // without those of watch_puts()
  std::unordered_map<std::uint64_t, WatchPtr> by_id_;          // by WatchId
  std::unordered_map<std::uint64_t, WatchNewsHandler> fired_;  // handlers about to be called
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::minstd_rand random_{jitter_seed()};
  Lifetime lifetime_;
};

}  // namespace baton::etcd
