// Engine: runs all acquisitions, holds and withdrawals of a client, over a single Session at a
// time. It lives on the strand of the client's Loop and knows no threads. The simulator runs the
// same Engine. This class is the door; each of its parts does one job.
#pragma once

#include "common/client/attempts.h"
#include "common/client/backstop.h"
#include "common/client/engine_context.h"
#include "common/client/holds.h"
#include "common/client/own_watches.h"
#include "common/client/session_keeper.h"
#include "common/client/withdrawals.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace baton::internal {

class Engine final {
 public:
  // token_base: the base that the store must record, and that is added to every token.
  Engine(Backend& backend, EngineHost& host, LogFunction log, std::uint32_t seed,
         std::uint64_t token_base = 0);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Opens the first session. Answers when the session is open, or with the first permanent error.
  // Retries after transient errors until close().
  void open(Answer<Done> answer) { keeper_.open(std::move(answer)); }

  void start(const std::shared_ptr<Attempt>& attempt) { attempts_.start(attempt); }
  void give_up(const std::shared_ptr<Attempt>& attempt, Errc why) {
    attempts_.give_up(attempt, why);
  }

  // Withdraws the ticket of a hold that was released, or declared lost outside of the engine. The
  // answer is optional.
  void retire_hold(const std::shared_ptr<Hold>& hold, Answer<Done> answer) {
    holds_.retire(hold, std::move(answer));
  }
  // Answers whether the lock is still held.
  void verify(const std::shared_ptr<Hold>& hold, Answer<bool> answer) {
    holds_.verify(hold, std::move(answer));
  }

  // The session, or null while there is none.
  Session* session() const noexcept { return context_.session.get(); }
  // Answers with the session, at once or when a new session is open. Answers with an error if there
  // is no session at the time `until`, if opening fails with a permanent error, or on close().
  void with_session(Time until, Answer<Session*> answer) {
    keeper_.with_session(until, std::move(answer));
  }
  SessionInfo info() const { return keeper_.info(); }
  const std::string& trouble() const noexcept { return context_.trouble; }

  // Ends every attempt with Errc::closed, declares every hold lost, and closes the session.
  void close(Answer<Done> answer) { keeper_.close(std::move(answer)); }
  // The same when the loop has stopped: ends the attempts and holds that close() did not reach.
  void abandon() noexcept { keeper_.abandon(); }

  // For tests: there is no attempt, no hold and no withdrawal.
  bool idle() const noexcept { return attempts_.empty() && holds_.empty() && withdrawals_.empty(); }

 private:
  EngineContext context_;  // first: the session must be destroyed last
  // Each part calls only parts above it. OwnWatches and Backstop tell events through functions.
  OwnWatches own_watches_;
  Withdrawals withdrawals_;
  Backstop backstop_;
  Holds holds_;
  Attempts attempts_;
  SessionKeeper
      keeper_;  // last: it ends first, and answers of the backend reach nothing afterwards
};

}  // namespace baton::internal
