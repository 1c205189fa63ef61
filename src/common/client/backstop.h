// Backstop: a watch may miss events, so the first waiter of this client in each queue, and all its
// holds, look from time to time.
#pragma once

#include "common/client/attempt.h"
#include "common/client/engine_context.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace baton::internal {

class Backstop {
 public:
  using LookOfWaiter = std::function<void(const std::shared_ptr<Attempt>&)>;
  using LookOfHold = std::function<void(Nonce)>;
  // look_of_waiter, look_of_hold: make a waiter or a hold look. Both may call the Backstop.
  Backstop(EngineContext& context, LookOfWaiter look_of_waiter, LookOfHold look_of_hold);

  // The attempt waits with a ticket of this rank. Sets Attempt::rank and starts the timer.
  void add_waiter(const std::shared_ptr<Attempt>& attempt, std::uint64_t rank);
  // The attempt no longer waits. Resets Attempt::rank.
  void remove_waiter(const std::shared_ptr<Attempt>& attempt);
  void add_hold(const LockName& name, Nonce nonce);  // rearm() starts the timer
  void remove_hold(const LockName& name, Nonce nonce);
  // Starts the timer of this lock if it has a waiter or a hold, and no timer runs.
  void rearm(const LockName& name);

 private:
  struct Group {  // this client's waiters and holds on a lock
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::shared_ptr<Attempt>> waiting;
    std::vector<Nonce> holds;
    TimerId timer = TimerId::none;
    bool empty() const { return waiting.empty() && holds.empty(); }
  };

  void arm(const LockName& name, Group& group);
  void run(const LockName& name);
  void drop_empty_group(const LockName& name);

  EngineContext& context_;
  const LookOfWaiter look_of_waiter_;
  const LookOfHold look_of_hold_;
  std::map<LockName, Group> groups_;
};

}  // namespace baton::internal
