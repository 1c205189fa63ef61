// Watches: single keys that are watched, on a few shared streams.
#pragma once

#include "common/base/jitter.h"
#include "common/base/loop.h"
#include "common/seam/session.h"
#include "etcd/link.h"

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

// Why a watch fired. A read at `revision` that `endpoint` serves alone shows the key gone, if
// `pinned`: then every event up to it was seen there, without a gap. Else: ask the cluster.
struct WatchNews {
  bool gone = false;  // the key, as it was, is deleted for sure
  bool pinned = false;
  std::int64_t revision = 0;
  std::size_t endpoint = 0;
};
using WatchNewsHandler = UniqueFunction<void(const WatchNews&)>;
// Somebody put the key: its new create revision.
using PutHandler = UniqueFunction<void(std::int64_t)>;

// Watches that wait begin at the store's present, and are followed by one look: a watch that begins
// at an old revision is served only every 100 ms. Where that does no harm (own keys, after a break
// of the stream) they begin right after what is known, and need no look.
class Watches {
 public:
  static constexpr std::size_t kPerStream = 1000;

  Watches(Loop& loop, Link& link);
  ~Watches();
  Watches(const Watches&) = delete;
  Watches& operator=(const Watches&) = delete;

  struct Want {
    std::string key;
    std::int64_t created = 0;  // create revision: Go's clients use their keys again
    std::int64_t known = 0;    // it was there at this revision
    bool from_known = false;   // begin there, and look no more
    Nanos delay{};             // not yet: it may not be worth it
  };
  // At most one event, then the watch is over. Not inside the call.
  WatchId watch(Want want, WatchNewsHandler handler);
  void unwatch(WatchId id);
  // Every put of a key that should not be there, from after this revision, until unwatched.
  WatchId watch_puts(const std::string& key, std::int64_t after, PutHandler handler);

  // We have deleted it ourselves, and were told so: no need to wait for the event.
  void deleted(const std::string& key, std::int64_t created, std::int64_t revision,
               std::size_t endpoint);
  // This endpoint is not to be trusted any more: its streams go elsewhere.
  void leave(std::size_t endpoint);

  std::size_t size() const noexcept { return watches_.size(); }
  std::size_t streams() const noexcept { return lanes_.size(); }

 private:
  class Lane;
  struct Watch {
    std::int64_t id = 0;  // on the wire
    Want want;
    PutHandler on_put;
    std::vector<std::pair<WatchId, WatchNewsHandler>> handlers;
    Lane* lane = nullptr;
    TimerId timer = TimerId::none;  // not begun yet
    std::int64_t covered = 0;       // everything after this is, or will be, heard; 0: nothing is
    bool begun = false;
    std::int64_t looking = 0;  // the look under way is for the watch that began at this revision
    bool resumed = false;
  };
  using WatchPtr = std::shared_ptr<Watch>;

  void begin(const WatchPtr& watch);
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
  std::map<std::int64_t, WatchPtr> watches_;                   // by id on the wire
  std::unordered_map<std::string, WatchPtr> by_key_;           // those for news
  std::unordered_map<std::uint64_t, WatchPtr> by_id_;          // by WatchId
  std::unordered_map<std::uint64_t, WatchNewsHandler> fired_;  // about to be told
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::minstd_rand random_{jitter_seed()};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace baton::etcd
