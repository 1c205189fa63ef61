// WatchTable: keeps the watches of one session in memory and calls their handlers. The session
// tells it what has happened.
#pragma once

#include "common/base/lifetime.h"
#include "common/base/loop.h"
#include "common/seam/session.h"
#include "file/lock_queue.h"

#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>

namespace baton::file {

// The watches of one lock, by the rank of the watched ticket.
using LockWatches = std::multimap<std::uint64_t, WatchId>;

class WatchTable {
 public:
  // on_over: called when a watch of that ticket has fired or was removed.
  WatchTable(Loop& loop, std::function<void(const QueuedTicket&)> on_over)
      : loop_(loop), on_over_(std::move(on_over)) {}
  ~WatchTable() { lifetime_.end(); }

  // Without a ticket the watch fires at once: its handler runs after the current step.
  WatchId add(LockWatches& lock, QueuedTicket ticket, WatchHandler handler);
  void remove(WatchId id);

  // Handlers run after the current step, each once, and not if removed before.
  void fire_rank(LockWatches& lock, std::uint64_t rank);
  void fire_gone(LockWatches& lock);  // the watches whose ticket is no longer in line
  void fire_gone_between(LockWatches& lock, std::uint64_t from, std::uint64_t to);
  void fire_client(ClientId client);  // the watches whose ticket belongs to that client
  void clear();

 private:
  struct Watch {
    LockWatches* lock = nullptr;  // null: fired, to be delivered
    LockWatches::iterator at;
    QueuedTicket ticket;
    WatchHandler handler;
  };
  void fire(WatchId id);
  void deliver(WatchId id);
  void detach(Watch& watch);

  Loop& loop_;
  std::function<void(const QueuedTicket&)> on_over_;
  std::unordered_map<WatchId, Watch> watches_;
  std::uint64_t next_ = 1;
  Lifetime lifetime_;
};

}  // namespace baton::file
