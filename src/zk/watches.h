// Watches: reports to watchers when a node goes. Watchers of the same node share one watch at the
// server. After a reconnect the C client registers all watches again, so their total size per
// session is limited. Beyond the limit, watches go to further lanes; each lane is a separate
// session.
#pragma once

#include "common/base/lifetime.h"
#include "common/base/loop.h"
#include "common/seam/session.h"
#include "zk/outbox.h"
#include "zk/watched_path.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace baton::zk {

class Watches {
 public:
  // After a reconnect the C client sends all watches in one packet, and the server refuses a packet
  // above 1 MiB.
  static constexpr std::size_t kBudget = std::size_t{512} * 1024;

  // budget: bytes of paths per lane. more_room: called when all lanes are full. Returns the outbox
  // of a new lane, or null: then the emptiest lane takes the watch.
  Watches(Loop& loop, std::size_t budget, std::function<Outbox*()> more_room);
  ~Watches();
  Watches(const Watches&) = delete;
  Watches& operator=(const Watches&) = delete;

  // Lane 0 is the session that owns our nodes.
  std::size_t add_lane(Outbox& outbox);
  std::size_t lanes() const noexcept { return lanes_.size(); }
  // The session of the lane has ended: its watchers look for themselves. The lane is not used
  // again.
  void lane_ended(std::size_t lane);
  // The connection of the lane was lost, so its watches report nothing until it is back. Watchers
  // of their own node look now, and every second until then, because a holder must learn soon that
  // its entry is gone. Not for lane 0: when it is back, all waiters look.
  void lane_cut(std::size_t lane);
  void stop_looking();  // the session has ended

  // mine: the path of the watcher's own node, if it waits behind this node. soon: the watch may
  // start up to 100 ms later.
  WatchId watch(const std::string& path, std::optional<std::string> mine, bool soon,
                WatchHandler handler);
  void unwatch(WatchId id);
  // The session is about to remove its node at this path: the event of the removal ends the watch,
  // so the watch needs no separate removal.
  void going(const std::string& path);

  void news(std::size_t lane, NodeEvent news, const std::string& path);

  std::size_t bytes(std::size_t lane) const noexcept { return lanes_[lane].bytes; }

 private:
  struct Lane {
    Outbox* outbox = nullptr;  // null: the lane has ended
    std::size_t bytes = 0;
    TimerId looking = TimerId::none;  // while it has no connection
    std::vector<std::string> looked;  // nodes whose watchers have looked, and may watch again
  };
  struct Watcher {
    std::string path;
    std::optional<std::string> mine;
    WatchHandler handler;
    TimerId timer = TimerId::none;
  };
  using Paths = std::unordered_map<std::string, WatchedPath>;

  void arm(const std::string& path);
  void armed(const std::string& path, std::uint64_t serial, const Reply& reply,
             std::uint64_t connection);
  void fire(const WatchedPath& gone, bool in_order);
  bool read_in_order(const std::string& path, std::uint64_t connection) const;
  std::size_t choose_lane(std::size_t bytes);
  void look_apart(std::size_t lane);
  void sweep();
  WatchedPath forget(Paths::iterator path, WatchProgress last);

  Loop& loop_;
  const std::size_t budget_;
  std::function<Outbox*()> more_room_;
  std::vector<Lane> lanes_;
  Paths paths_;
  std::unordered_map<WatchId, Watcher> watchers_;
  std::vector<std::string> idle_;  // paths whose last watcher may have gone in this step
  bool sweeping_ = false;
  std::uint64_t next_id_ = 1;
  std::uint64_t next_serial_ = 1;
  Lifetime lifetime_;
};

}  // namespace baton::zk
