// Attempts: the acquisitions that run. Each has a state machine (Acquisition), which is told what
// happens. This class carries out the actions that the machine returns.
#pragma once

#include "common/recipe/acquisition.h"
#include "common/client/attempt.h"
#include "common/client/backstop.h"
#include "common/client/engine_context.h"
#include "common/client/holds.h"
#include "common/client/own_watches.h"
#include "common/client/withdrawals.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>

namespace baton::internal {

class Attempts {
 public:
  Attempts(EngineContext& context, OwnWatches& own_watches, Withdrawals& withdrawals,
           Backstop& backstop, Holds& holds);

  void start(const std::shared_ptr<Attempt>& attempt);
  // Ends the attempt with this error. Also before start(), which then does nothing.
  void give_up(const std::shared_ptr<Attempt>& attempt, Errc why);

  void own_ticket_event(Nonce nonce);                  // the ticket of an attempt may be gone
  void look(const std::shared_ptr<Attempt>& attempt);  // when the Backstop asks

  void session_opened();  // all attempts join
  void session_resumed();
  void session_ended();
  void fail_all(const Error& error);
  void close_all();
  // Answers all attempts and forgets them: the loop has stopped.
  void abandon() noexcept;

  std::size_t size() const noexcept { return attempts_.size(); }
  bool empty() const noexcept { return attempts_.empty(); }

 private:
  void carry_out(const std::shared_ptr<Attempt>& attempt, Actions actions);
  void join_or_look(const std::shared_ptr<Attempt>& attempt, bool join, const LookHint& hint);
  void pause(const std::shared_ptr<Attempt>& attempt);
  void grant(const std::shared_ptr<Attempt>& attempt);
  void settle(const std::shared_ptr<Attempt>& attempt, Result<std::shared_ptr<Hold>> outcome);
  Error describe(const Attempt& attempt, const Error& error) const;
  bool lease_ok() const;
  Nonce fresh_nonce();

  EngineContext& context_;
  OwnWatches& own_watches_;
  Withdrawals& withdrawals_;
  Backstop& backstop_;
  Holds& holds_;
  std::uint64_t next_nonce_ = 1;
  std::uint64_t next_attempt_ = 1;
  std::map<std::uint64_t, std::shared_ptr<Attempt>> attempts_;  // by age: they rejoin in order
  std::unordered_map<Nonce, std::shared_ptr<Attempt>> by_nonce_;
};

}  // namespace baton::internal
