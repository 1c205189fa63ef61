// Engine: runs all acquisitions, holds and withdrawals of a client, over a single Session at a
// time. It lives on the strand of the client's Loop and knows no threads. The simulator runs the
// same Engine.
#pragma once

#include "common/client/attempt.h"
#include "common/client/attempts.h"
#include "common/client/backstop.h"
#include "common/client/engine_context.h"
#include "common/client/hold.h"
#include "common/client/holds.h"
#include "common/client/own_watches.h"
#include "common/client/withdrawals.h"
#include "common/base/check.h"
#include "common/base/lifetime.h"
#include "common/seam/session.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace baton::internal {

class Engine final : public SessionListener {
 public:
  // token_base: the base that the store must record, and that is added to every token.
  Engine(Backend& backend, EngineHost& host, LogFunction log, std::uint32_t seed,
         std::uint64_t token_base = 0);
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Opens the first session. Answers when the session is open, or with the first permanent error.
  // Retries after transient errors until close().
  void open(Answer<Done> answer);

  void start(const std::shared_ptr<Attempt>& attempt) { attempts_.start(attempt); }
  void give_up(const std::shared_ptr<Attempt>& attempt, Errc why) {
    attempts_.give_up(attempt, why);
  }

  // Withdraws the ticket of a hold that was released, or declared lost outside of the engine. The
  // answer is optional.
  void retire_hold(const std::shared_ptr<Hold>& hold, Answer<Done> answer) {
    holds_.retire(hold, std::move(answer));
  }
  void verify(const std::shared_ptr<Hold>& hold, Answer<bool> answer) {
    holds_.verify(hold, std::move(answer));
  }

  // The session, or null while there is none.
  Session* session() const noexcept { return context_.session.get(); }
  // Answers with the session, at once or when a new session is open. Answers with an error if there
  // is no session at the time `until`, if opening fails with a permanent error, or on close().
  void with_session(Time until, Answer<Session*> answer);
  SessionInfo info() const;
  const std::string& trouble() const noexcept { return context_.trouble; }

  // Ends every attempt with Errc::closed, declares every hold lost, and closes the session.
  void close(Answer<Done> answer);
  // The same when the loop has stopped: ends the attempts and holds that close() did not reach.
  void abandon() noexcept;

  // For tests: there is no attempt, no hold and no withdrawal.
  bool idle() const noexcept { return attempts_.empty() && holds_.empty() && withdrawals_.empty(); }

  void session_ended(std::error_code reason, const std::string& detail) override;
  void session_resumed() override;

 private:
  struct Asker {  // a call of with_session() that waits for the next session
    Answer<Session*> answer;
    TimerId timer = TimerId::none;
  };

  // engine_session.cpp
  void try_open();
  void check_token_base(std::unique_ptr<Session> session);
  void dismiss_newcomer();
  void drop_newcomer();
  void newcomer_ended(const std::string& detail);
  void answer_askers(const Error* error);  // null: there is a session
  void session_opened(std::unique_ptr<Session> session);
  void open_failed(const Error& error);

  EngineContext context_;  // first: the session must be destroyed last

  std::unique_ptr<Session> newcomer_;  // open; its token base is not checked yet, or was refused
  std::uint64_t newcomers_ = 0;        // counts newcomers: answers of earlier ones are ignored
  bool dismissed_ = false;             // the newcomer is being closed
  Answer<Done> opened_;
  std::map<std::uint64_t, Asker> askers_;
  std::uint64_t next_asker_ = 1;
  int open_failures_ = 0;
  TimerId open_timer_ = TimerId::none;
  Answer<Done> closed_;
  Lifetime lifetime_;  // for answers of the backend, which may come after the engine's end

  // Calls go up this list: an attempt calls Holds, a hold calls Withdrawals and Backstop.
  OwnWatches own_watches_;
  Withdrawals withdrawals_;
  Backstop backstop_;
  Holds holds_;
  Attempts attempts_;
};

}  // namespace baton::internal
