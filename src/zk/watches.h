// Watches: who waits for which node to go. Counted by path: many may wait for one node, the
// server is asked once. What the server would have to be told again after a reconnect is bounded:
// beyond that, watches go to further lanes, each a session of its own.
#pragma once

#include "common/base/loop.h"
#include "common/seam/session.h"
#include "zk/outbox.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace baton::zk {

class Watches {
 public:
  // The C client tells the server all watches again in one packet, which the server refuses above
  // 1 MiB.
  static constexpr std::size_t kBudget = std::size_t{512} * 1024;

  // budget: bytes of paths per lane. more_room: all lanes are full: add one, now or later; until
  // then the last one takes more.
  Watches(Loop& loop, std::size_t budget, std::function<Outbox*()> more_room);
  ~Watches();
  Watches(const Watches&) = delete;
  Watches& operator=(const Watches&) = delete;

  // Lane 0 is the session that owns our nodes.
  std::size_t add_lane(Outbox& outbox);
  std::size_t lanes() const noexcept { return lanes_.size(); }
  // Its session is over: whoever watched there looks for himself. The lane is not used again.
  void lane_ended(std::size_t lane);
  // Its connection was lost: what is watched there is not told until it is back. Those that watch
  // their own node there look now, and every second until then: a holder must hear soon that its
  // entry is gone. Not for lane 0: after its return everything looks.
  void lane_cut(std::size_t lane);
  void stop_looking();  // the session is over

  // mine: the path of the watcher's own node, if he stands behind this one. soon: within 100 ms is
  // early enough.
  WatchId watch(const std::string& path, std::optional<std::string> mine, bool soon,
                WatchHandler handler);
  void unwatch(WatchId id);
  // Our node at this path is about to be removed: its watch needs no removal of its own.
  void going(const std::string& path);

  void news(std::size_t lane, NodeEvent news, const std::string& path);

  std::size_t bytes(std::size_t lane) const noexcept { return lanes_[lane].bytes; }

 private:
  struct Lane {
    Outbox* outbox = nullptr;  // null: over
    std::size_t bytes = 0;
    TimerId looking = TimerId::none;  // while it is apart
    std::vector<std::string> looked;  // nodes whose watchers have looked: some come back, some not
  };
  struct Path {
    std::vector<WatchId> watchers;
    std::size_t lane = 0;
    bool asked = false;  // the request is on its way
    bool armed = false;  // the server will tell
    bool going = false;
    TimerId blocked = TimerId::none;  // we may not watch it: whoever waits looks when this fires
    std::uint64_t connection = 0;     // where it was armed
    std::uint64_t serial = 0;         // answers to earlier lives of this path are void
  };
  struct Watcher {
    std::string path;
    std::optional<std::string> mine;
    WatchHandler handler;
    TimerId timer = TimerId::none;
  };
  using Paths = std::unordered_map<std::string, Path>;

  void arm(const std::string& path);
  void armed(const std::string& path, std::uint64_t serial, const Reply& reply,
             std::uint64_t connection);
  void fire(const Path& gone, bool in_order);
  bool read_in_order(const std::string& path, std::uint64_t connection) const;
  std::size_t choose_lane(std::size_t bytes);
  void look_apart(std::size_t lane);
  void sweep();
  Path forget(Paths::iterator path);

  Loop& loop_;
  const std::size_t budget_;
  std::function<Outbox*()> more_room_;
  std::vector<Lane> lanes_;
  Paths paths_;
  std::unordered_map<WatchId, Watcher> watchers_;
  std::vector<std::string> idle_;  // paths that may have lost their last watcher in this step
  bool sweeping_ = false;
  std::uint64_t next_id_ = 1;
  std::uint64_t next_serial_ = 1;
  std::shared_ptr<bool> alive_;
};

}  // namespace baton::zk
