// Holds: the locks that this client holds. Watches their tickets, withdraws the tickets of released
// and lost holds, and declares losses.
#pragma once

#include "common/client/backstop.h"
#include "common/client/engine_context.h"
#include "common/client/hold.h"
#include "common/client/own_watches.h"
#include "common/client/withdrawals.h"

#include <cstddef>
#include <memory>
#include <unordered_map>

namespace baton::internal {

class Holds {
 public:
  Holds(EngineContext& context, OwnWatches& own_watches, Withdrawals& withdrawals,
        Backstop& backstop);

  void add(const std::shared_ptr<Hold>& hold, const Ticket& own);
  // See Engine::retire_hold() and Engine::verify(). Every hold that ends passes retire(), which
  // writes its only metric and log line, except in abandon().
  void retire(const std::shared_ptr<Hold>& hold, Answer<Done> answer);
  void verify(const std::shared_ptr<Hold>& hold, Answer<bool> answer);

  // Makes the hold with this ticket look whether its ticket is there. False: there is none.
  bool look(Nonce nonce);
  void check_all();  // all holds look
  void lose_all(Errc reason);
  // Declares all holds lost and forgets them: the loop has stopped.
  void abandon() noexcept;

  std::size_t size() const noexcept { return holds_.size(); }
  bool empty() const noexcept { return holds_.empty(); }

 private:
  void check(const std::shared_ptr<Hold>& hold);
  void looked(const std::shared_ptr<Hold>& hold, const Standing& standing);
  void lose(const std::shared_ptr<Hold>& hold, Errc reason);
  void report(const Hold& hold, bool lost);
  void forget(const std::shared_ptr<Hold>& hold);

  EngineContext& context_;
  OwnWatches& own_watches_;
  Withdrawals& withdrawals_;
  Backstop& backstop_;
  std::unordered_map<Nonce, std::shared_ptr<Hold>> holds_;
};

}  // namespace baton::internal
