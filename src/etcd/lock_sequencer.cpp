#include "etcd/lock_sequencer.h"

#include <utility>

namespace baton::etcd {

void LockSequencer::enqueue(const std::string& prefix, bool join, Turn turn) {
  LockLane& lane = lanes_[prefix];
  const std::uint64_t after = lane.removals.empty() ? 0 : *lane.removals.rbegin();
  lane.waiting.push_back({join, after, std::move(turn)});
  pump(prefix);
}

std::uint64_t LockSequencer::removing(const std::string& prefix) {
  const std::uint64_t removal = next_++;
  lanes_[prefix].removals.insert(removal);
  return removal;
}

void LockSequencer::removed(const std::string& prefix, std::uint64_t removal) {
  const auto lane = lanes_.find(prefix);
  if (lane == lanes_.end()) return;
  lane->second.removals.erase(removal);
  pump(prefix);
}

void LockSequencer::joined(const std::string& prefix, bool served) {
  const auto found = lanes_.find(prefix);
  if (found == lanes_.end()) return;
  found->second.joining = false;
  if (!served) {
    auto turned_away = std::exchange(found->second.waiting, {});
    for (auto& request : turned_away) request.turn(false);
  }
  pump(prefix);
}

void LockSequencer::pump(const std::string& prefix) {
  const auto found = lanes_.find(prefix);
  if (found == lanes_.end() || std::exchange(found->second.pumping, true)) return;
  // A turn may add and erase lanes of other locks: references into a std::map stay valid. `pumping`
  // prevents a nested call from erasing this lane.
  LockLane& lane = found->second;
  while (!lane.waiting.empty()) {
    const Request& next = lane.waiting.front();
    if (next.join && lane.joining) break;
    if (!lane.removals.empty() && *lane.removals.begin() <= next.after) break;
    Request request = std::move(lane.waiting.front());
    lane.waiting.pop_front();
    lane.joining |= request.join;
    request.turn(true);
  }
  lane.pumping = false;
  if (lane.waiting.empty() && lane.removals.empty() && !lane.joining) lanes_.erase(prefix);
}

}  // namespace baton::etcd
