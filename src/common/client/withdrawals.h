// Withdrawals: removes tickets from their queues, and retries until each is gone or the session has
// ended.
#pragma once

#include "common/client/engine_context.h"
#include "common/client/own_watches.h"

#include <unordered_map>
#include <vector>

namespace baton::internal {

class Withdrawals {
 public:
  Withdrawals(EngineContext& context, OwnWatches& own_watches);

  // Removes the ticket, and no longer watches it. The answer is optional. It comes when the ticket
  // is gone, after the first permanent error, or when the session ends.
  void withdraw(const LockName& name, Nonce nonce, Answer<Done> answer);
  // Answers together with the withdrawal of this ticket. False: there is none, and the answer was
  // not taken.
  bool join(Nonce nonce, Answer<Done>& answer);

  void retry_now();  // all withdrawals that wait for a retry
  // Answers all withdrawals and forgets them: the session has ended.
  void end(const Result<Done>& result);
  // Forgets all withdrawals. Destroying the answers tells their callers: ClientImpl::ask() has a
  // Promise.
  void abandon() noexcept { jobs_.clear(); }
  bool empty() const noexcept { return jobs_.empty(); }

 private:
  struct Job {
    LockName name;
    std::vector<Answer<Done>> answers;
    int failures = 0;
    TimerId timer = TimerId::none;
    bool reported = false;
  };

  void run(Nonce nonce);
  void finish(Nonce nonce, const Result<WithdrawResult>& result);
  void retry_later(Nonce nonce, Job& job);

  EngineContext& context_;
  OwnWatches& own_watches_;
  std::unordered_map<Nonce, Job> jobs_;
};

}  // namespace baton::internal
