// SessionKeeper: opens the sessions of a client, one at a time, checks each before it is used, and
// tells the other parts of the engine when a session opens, resumes or ends.
#pragma once

#include "common/client/attempts.h"
#include "common/client/engine_context.h"
#include "common/client/holds.h"
#include "common/client/own_watches.h"
#include "common/client/withdrawals.h"
#include "common/base/lifetime.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace baton::internal {

class SessionKeeper final : public SessionListener {
 public:
  SessionKeeper(EngineContext& context, OwnWatches& own_watches, Withdrawals& withdrawals,
                Holds& holds, Attempts& attempts);
  ~SessionKeeper() override;
  SessionKeeper(const SessionKeeper&) = delete;
  SessionKeeper& operator=(const SessionKeeper&) = delete;

  // See the functions of the same names in Engine.
  void open(Answer<Done> answer);
  void with_session(Time until, Answer<Session*> answer);
  SessionInfo info() const;
  void close(Answer<Done> answer);
  void abandon() noexcept;

  void session_ended(std::error_code reason, const std::string& detail) override;
  void session_resumed() override;

 private:
  struct Asker {  // a call of with_session() that waits for the next session
    Answer<Session*> answer;
    TimerId timer = TimerId::none;
  };

  void try_open();
  void check_token_base(std::unique_ptr<Session> session);
  void dismiss_newcomer();
  void drop_newcomer();
  void newcomer_ended(const std::string& detail);
  void session_opened(std::unique_ptr<Session> session);
  void open_failed(const Error& error);
  void answer_askers(const Error* error);  // null: there is a session

  EngineContext& context_;
  OwnWatches& own_watches_;
  Withdrawals& withdrawals_;
  Holds& holds_;
  Attempts& attempts_;

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
};

}  // namespace baton::internal
