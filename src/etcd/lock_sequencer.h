// LockSequencer: the order of what one client asks of one lock.
#pragma once

#include "etcd/namespace.h"

#include "common/base/unique_function.h"

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>

namespace baton::etcd {

// etcd serves the calls of one connection at the same time: two that are under way may take effect
// in either order. Callers expect theirs: who asked first stands first, and a lock that was
// released is not found taken. So of one lock, joins go one after the other, and whatever looks for
// a free lock waits for the removals that went out before it. Removals wait for nobody.
class LockSequencer {
 public:
  // go: it is your turn; else: whoever went before you could not be served, and nor can you. May be
  // called inside the call.
  using Turn = UniqueFunction<void(bool go)>;

  // A join: its turn ends with joined().
  void join(const std::string& prefix, Turn turn) { enqueue(prefix, true, std::move(turn)); }
  // served: false if the store could not be reached; then those who wait are turned away.
  void joined(const std::string& prefix, bool served);
  // A look for a free lock; there is nothing to end.
  void peek(const std::string& prefix, Turn turn) { enqueue(prefix, false, std::move(turn)); }

  std::uint64_t removing(const std::string& prefix);
  void removed(const std::string& prefix, std::uint64_t removal);

  std::size_t size() const noexcept { return lanes_.size(); }

 private:
  struct Request {
    bool join = false;
    std::uint64_t after = 0;  // the newest removal that it waits for
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
