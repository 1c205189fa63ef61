// LockSequencer: puts the joins, looks and removals of one client on one lock in order.
#pragma once

#include "etcd/namespace.h"

#include "common/base/unique_function.h"

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>

namespace baton::etcd {

// etcd serves the requests of one connection concurrently, so two requests under way may take
// effect in either order. Callers expect the order of their calls: the first caller gets the first
// ticket, and a lock that was released is not reported as taken. Therefore the joins of one lock
// are sent one after the other, and joins and peeks wait for the removals that were sent before
// them. Removals wait for nothing.
class LockSequencer {
 public:
  // go: true if the request may be sent now; false if an earlier join could not reach the store,
  // and this request is rejected as well. May be called inside join() and peek().
  using Turn = UniqueFunction<void(bool go)>;

  // Requests a turn for a join. The turn ends with joined().
  void join(const std::string& prefix, Turn turn) { enqueue(prefix, true, std::move(turn)); }
  // served: false if the store could not be reached. Then all waiting requests are rejected.
  void joined(const std::string& prefix, bool served);
  // Requests a turn for a read that checks whether the lock is free. Needs no call at its end.
  void peek(const std::string& prefix, Turn turn) { enqueue(prefix, false, std::move(turn)); }

  std::uint64_t removing(const std::string& prefix);
  void removed(const std::string& prefix, std::uint64_t removal);

  std::size_t size() const noexcept { return lanes_.size(); }

 private:
  struct Request {
    bool join = false;
    std::uint64_t after = 0;  // the newest removal that this request waits for
    Turn turn;
  };
  struct LockLane {
    bool joining = false;
    bool pumping = false;
    std::set<std::uint64_t> removals;
    std::deque<Request> waiting;
  };

  void enqueue(const std::string& prefix, bool join, Turn turn);
  void pump(const std::string& prefix);

  std::map<std::string, LockLane> lanes_;
  std::uint64_t next_ = 1;
};

}  // namespace baton::etcd
