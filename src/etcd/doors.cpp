#include "etcd/doors.h"

#include <utility>

namespace baton::internal {

void EtcdDoors::come(const std::string& prefix, bool join, Turn turn) {
  Door& door = doors_[prefix];
  const std::uint64_t after = door.removals.empty() ? 0 : *door.removals.rbegin();
  door.waiting.push_back({join, after, std::move(turn)});
  pump(prefix);
}

std::uint64_t EtcdDoors::removing(const std::string& prefix) {
  const std::uint64_t removal = next_++;
  doors_[prefix].removals.insert(removal);
  return removal;
}

void EtcdDoors::removed(const std::string& prefix, std::uint64_t removal) {
  const auto door = doors_.find(prefix);
  if (door == doors_.end()) return;
  door->second.removals.erase(removal);
  pump(prefix);
}

void EtcdDoors::joined(const std::string& prefix, bool served) {
  const auto found = doors_.find(prefix);
  if (found == doors_.end()) return;
  found->second.joining = false;
  if (!served) {
    auto turned_away = std::exchange(found->second.waiting, {});
    for (auto& visitor : turned_away) visitor.turn(false);
  }
  pump(prefix);
}

void EtcdDoors::pump(const std::string& prefix) {
  const auto found = doors_.find(prefix);
  if (found == doors_.end() || std::exchange(found->second.pumping, true)) return;
  // References into a map stay good whatever a turn does to other doors.
  Door& door = found->second;
  while (!door.waiting.empty()) {
    const Visitor& next = door.waiting.front();
    if (next.join && door.joining) break;
    if (!door.removals.empty() && *door.removals.begin() <= next.after) break;
    Visitor visitor = std::move(door.waiting.front());
    door.waiting.pop_front();
    door.joining |= visitor.join;
    visitor.turn(true);
  }
  door.pumping = false;
  if (door.waiting.empty() && door.removals.empty() && !door.joining) doors_.erase(prefix);
}

}  // namespace baton::internal
