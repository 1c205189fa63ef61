#include "zk/watches.h"

#include <algorithm>
#include <utility>

namespace baton::zk {

namespace {
constexpr std::chrono::milliseconds kSoon{100};
constexpr std::chrono::milliseconds kUnwatchable{1'000};

std::size_t cost(const std::string& path) { return path.size() + 4; }
}  // namespace

Watches::Watches(Loop& loop, std::size_t budget, std::function<Outbox*()> more_room)
    : loop_(loop), budget_(budget), more_room_(std::move(more_room)) {}

Watches::~Watches() {
  lifetime_.end();
  for (auto& [id, watcher] : watchers_) loop_.cancel(watcher.timer);
  for (auto& [path, watched] : paths_) loop_.cancel(watched.pause);
  stop_looking();
}

std::size_t Watches::add_lane(Outbox& outbox) {
  const std::size_t lane = lanes_.size();
  lanes_.push_back({&outbox, 0, TimerId::none, {}});
  if (lane != 0) {
    // The first connection of the lane may take a while.
    lanes_[lane].looking = loop_.at(loop_.now() + kUnwatchable, [this, lane] { look_apart(lane); });
  }
  return lane;
}

void Watches::lane_cut(std::size_t lane) {
  loop_.cancel(lanes_[lane].looking);
  look_apart(lane);
}

void Watches::stop_looking() {
  for (auto& lane : lanes_) loop_.cancel(lane.looking);
}

void Watches::look_apart(std::size_t lane) {
  for (auto& path : std::exchange(lanes_[lane].looked, {})) idle_.push_back(std::move(path));
  sweep();
  const auto* const outbox = lanes_[lane].outbox;
  if (outbox == nullptr || outbox->open()) return;
  lanes_[lane].looking = loop_.at(loop_.now() + kUnwatchable, [this, lane] { look_apart(lane); });
  std::vector<WatchId> own;
  for (auto& [path, watched] : paths_) {
    const WatchState state = watched.state();
    const bool requested = state == WatchState::asked || state == WatchState::armed;
    if (watched.lane != lane || !requested) continue;
    const auto before = own.size();
    std::erase_if(watched.watchers, [&](WatchId id) {
      const auto watcher = watchers_.find(id);
      if (watcher == watchers_.end() || watcher->second.mine) return false;
      own.push_back(id);
      return true;
    });
    // The watch at the server stays: most watchers look, find their node, and watch it again.
    if (own.size() != before) lanes_[lane].looked.push_back(path);
  }
  for (const WatchId id : own) {
    auto watcher = watchers_.extract(id);
    if (watcher.empty()) continue;  // unwatched meanwhile
    loop_.cancel(watcher.mapped().timer);
    watcher.mapped().handler(WatchEvent::look);
  }
}

void Watches::lane_ended(std::size_t lane) {
  lanes_[lane].outbox = nullptr;
  loop_.cancel(lanes_[lane].looking);
  lanes_[lane].looked.clear();
  std::vector<std::string> lost;
  for (const auto& [path, watched] : paths_) {
    if (watched.lane == lane) lost.push_back(path);
  }
  for (const auto& path : lost) {
    if (const auto found = paths_.find(path); found != paths_.end()) {
      fire(forget(found, WatchProgress::lane_ended), false);
    }
  }
}

std::size_t Watches::choose_lane(std::size_t bytes) {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i].outbox != nullptr && lanes_[i].bytes + bytes <= budget_) return i;
  }
  if (Outbox* const more = more_room_()) return add_lane(*more);
  // No new lane: use the emptiest one.
  std::size_t best = 0;
  for (std::size_t i = 1; i < lanes_.size(); ++i) {
    if (lanes_[i].outbox != nullptr && lanes_[i].bytes < lanes_[best].bytes) best = i;
  }
  return best;
}

WatchId Watches::watch(const std::string& path, std::optional<std::string> mine, bool soon,
                       WatchHandler handler) {
  const WatchId id{next_id_++};
  auto& watcher = watchers_[id];
  watcher.path = path;
  watcher.mine = std::move(mine);
  watcher.handler = std::move(handler);
  const auto [found, fresh] = paths_.try_emplace(path, next_serial_);
  if (fresh) ++next_serial_;
  found->second.watchers.push_back(id);
  found->second.going = false;
  if (found->second.state() != WatchState::delayed) return id;
  if (soon) {
    watcher.timer = loop_.at(loop_.now() + kSoon, [this, path] { arm(path); });
  } else {
    arm(path);
  }
  return id;
}

void Watches::arm(const std::string& path) {
  const auto found = paths_.find(path);
  if (found == paths_.end()) return;
  WatchedPath& watched = found->second;
  if (watched.state() != WatchState::delayed) return;  // another watcher could not wait
  watched.lane = choose_lane(cost(path));
  Lane& lane = lanes_[watched.lane];
  lane.bytes += cost(path);
  watched.on(WatchProgress::ask);
  lane.outbox->ask({Request::Kind::get_watch, path, {}},
                   [this, path, serial = watched.serial](Reply& reply, std::uint64_t connection) {
                     armed(path, serial, reply, connection);
                   });
}

void Watches::armed(const std::string& path, std::uint64_t serial, const Reply& reply,
                    std::uint64_t connection) {
  const auto found = paths_.find(path);
  if (found == paths_.end() || found->second.serial != serial) return;
  WatchedPath& watched = found->second;
  if (reply.status == Status::ok) {
    watched.on(WatchProgress::answer_ok);
    watched.connection = connection;
    if (watched.watchers.empty()) {
      idle_.push_back(path);
      sweep();
    }
    return;
  }
  lanes_[watched.lane].bytes -= cost(path);
  const auto* const outbox = lanes_[watched.lane].outbox;
  const bool cut = outbox == nullptr || !outbox->open();
  if (reply.status == Status::lost && cut && !watched.watchers.empty()) {
    watched.on(WatchProgress::answer_lost);
    arm(path);  // sent with the next connection
    return;
  }
  if (reply.status != Status::no_node && !watched.watchers.empty()) {
    // The server refuses the watch, or cannot serve it now. After a pause the watchers look for
    // themselves.
    watched.on(WatchProgress::answer_other);
    watched.pause = loop_.at(loop_.now() + kUnwatchable, [this, path] {
      if (const auto late = paths_.find(path); late != paths_.end()) {
        fire(forget(late, WatchProgress::pause_over), false);
      }
    });
    return;
  }
  fire(forget(found, WatchProgress::answer_final), false);  // gone already
}

WatchedPath Watches::forget(Paths::iterator path, WatchProgress last) {
  WatchedPath watched = std::move(path->second);
  loop_.cancel(watched.pause);
  if (watched.state() == WatchState::armed && lanes_[watched.lane].outbox != nullptr) {
    lanes_[watched.lane].bytes -= cost(path->first);
  }
  watched.on(last);
  paths_.erase(path);
  return watched;
}

bool Watches::read_in_order(const std::string& path, std::uint64_t connection) const {
  const auto found = paths_.find(path);
  return found != paths_.end() && found->second.state() == WatchState::armed &&
         found->second.lane == 0 && found->second.connection == connection;
}

void Watches::fire(const WatchedPath& gone, bool in_order) {
  for (const WatchId id : gone.watchers) {
    auto watcher = watchers_.extract(id);
    if (watcher.empty()) continue;
    loop_.cancel(watcher.mapped().timer);
    // The events of one connection arrive in the order of the changes: if our own node had gone
    // before this one, its event would have come before.
    const auto& mine = watcher.mapped().mine;
    const bool sure = in_order && mine && read_in_order(*mine, gone.connection);
    watcher.mapped().handler(sure ? WatchEvent::gone : WatchEvent::look);
  }
}

void Watches::news(std::size_t lane, NodeEvent news, const std::string& path) {
  const auto found = paths_.find(path);
  if (found == paths_.end() || found->second.lane != lane ||
      found->second.state() != WatchState::armed) {
    return;
  }
  if (news == NodeEvent::changed) {
    // The data of the node was changed, which used up the watch.
    lanes_[lane].bytes -= cost(path);
    found->second.on(WatchProgress::changed);
    if (found->second.watchers.empty()) {
      forget(found, WatchProgress::unwanted);
    } else {
      arm(path);
    }
    return;
  }
  const bool in_order = lane == 0 && found->second.connection == lanes_[0].outbox->connection();
  fire(forget(found, WatchProgress::gone), in_order);
}

void Watches::unwatch(WatchId id) {
  auto watcher = watchers_.extract(id);
  if (watcher.empty()) return;
  loop_.cancel(watcher.mapped().timer);
  const auto found = paths_.find(watcher.mapped().path);
  if (found == paths_.end()) return;
  std::erase(found->second.watchers, id);
  if (!found->second.watchers.empty()) return;
  idle_.push_back(watcher.mapped().path);
  if (std::exchange(sweeping_, true)) return;
  // Deferred to the end of this step, because the same node is often watched again at once.
  loop_.defer(lifetime_.guard([this] { sweep(); }));
}

void Watches::going(const std::string& path) {
  if (const auto found = paths_.find(path); found != paths_.end()) found->second.going = true;
}

void Watches::sweep() {
  sweeping_ = false;
  for (const auto& path : std::exchange(idle_, {})) {
    const auto found = paths_.find(path);
    if (found == paths_.end() || !found->second.watchers.empty()) continue;
    if (found->second.state() == WatchState::asked) {
      found->second.on(WatchProgress::unwanted);  // armed() decides when the answer comes
      continue;
    }
    const bool armed = found->second.state() == WatchState::armed;
    if (armed && found->second.going) continue;  // its event ends it
    const std::size_t lane = forget(found, WatchProgress::unwanted).lane;
    if (!armed || lanes_[lane].outbox == nullptr) continue;
    // The answer does not matter: a watch that remains costs only one event, which is ignored.
    lanes_[lane].outbox->ask({Request::Kind::unwatch, path, {}}, [](Reply&, std::uint64_t) {});
  }
}

}  // namespace baton::zk
