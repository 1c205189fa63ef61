#include "file/watch_table.h"

#include <vector>

namespace baton::file {

WatchId WatchTable::add(LockWatches& lock, QueuedTicket ticket, WatchHandler handler) {
  const WatchId id{next_++};
  Watch& watch = watches_[id];
  watch.handler = std::move(handler);
  watch.lock = &lock;
  watch.at = lock.emplace(ticket ? ticket.rank() : 0, id);
  watch.ticket = std::move(ticket);
  if (!watch.ticket) fire(id);
  return id;
}

void WatchTable::remove(WatchId id) {
  const auto it = watches_.find(id);
  if (it == watches_.end()) return;
  Watch watch = std::move(it->second);
  watches_.erase(it);
  detach(watch);
}

void WatchTable::detach(Watch& watch) {
  if (watch.lock == nullptr) return;
  watch.lock->erase(watch.at);
  watch.lock = nullptr;
  // Take the ticket out first, because on_over_ may call this object again.
  if (const QueuedTicket ticket = std::exchange(watch.ticket, {})) on_over_(ticket);
}

void WatchTable::fire(WatchId id) {
  const auto it = watches_.find(id);
  if (it == watches_.end() || it->second.lock == nullptr) return;
  detach(it->second);
  loop_.defer(lifetime_.guard([this, id] { deliver(id); }));
}

void WatchTable::deliver(WatchId id) {
  const auto it = watches_.find(id);
  if (it == watches_.end()) return;
  WatchHandler handler = std::move(it->second.handler);
  watches_.erase(it);
  handler(WatchEvent::look);
}

void WatchTable::fire_rank(LockWatches& lock, std::uint64_t rank) {
  for (auto it = lock.lower_bound(rank); it != lock.end() && it->first == rank;) {
    fire((it++)->second);
  }
}

void WatchTable::fire_gone(LockWatches& lock) {
  for (auto it = lock.begin(); it != lock.end();) {
    const WatchId id = (it++)->second;
    const QueuedTicket& ticket = watches_.at(id).ticket;
    if (!ticket || !ticket.in_line()) fire(id);
  }
}

void WatchTable::fire_gone_between(LockWatches& lock, std::uint64_t from, std::uint64_t to) {
  for (auto it = lock.lower_bound(from); it != lock.end() && it->first < to;) {
    const WatchId id = (it++)->second;
    const QueuedTicket& ticket = watches_.at(id).ticket;
    if (!ticket || !ticket.in_line()) fire(id);
  }
}

void WatchTable::fire_client(ClientId client) {
  std::vector<WatchId> ids;
  for (const auto& [id, watch] : watches_) {
    if (watch.ticket && watch.ticket.client() == client) ids.push_back(id);
  }
  for (const WatchId id : ids) fire(id);
}

void WatchTable::clear() {
  for (auto& [id, watch] : watches_) {
    if (watch.lock != nullptr) watch.lock->erase(watch.at);
  }
  watches_.clear();
}

}  // namespace baton::file
