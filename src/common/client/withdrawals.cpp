#include "common/client/withdrawals.h"

#include <string>
#include <utility>

namespace baton::internal {

Withdrawals::Withdrawals(EngineContext& context, OwnWatches& own_watches)
    : context_(context), own_watches_(own_watches) {}

void Withdrawals::withdraw(const LockName& name, Nonce nonce, Answer<Done> answer) {
  own_watches_.unwatch(nonce);
  if (context_.session == nullptr) {
    if (answer) {
      answer(Error(Errc::session_expired,
                   "there is no session; the store removes the entry with the old session"));
    }
    return;
  }
  auto& job = jobs_.try_emplace(nonce, Job{name, {}, 0, TimerId::none, false}).first->second;
  if (answer) job.answers.push_back(std::move(answer));
  run(nonce);
}

bool Withdrawals::join(Nonce nonce, Answer<Done>& answer) {
  const auto job = jobs_.find(nonce);
  if (job == jobs_.end()) return false;
  job->second.answers.push_back(std::move(answer));
  return true;
}

void Withdrawals::run(Nonce nonce) {
  const auto job = jobs_.find(nonce);
  if (job == jobs_.end() || context_.session == nullptr) return;
  context_.session->withdraw(
      job->second.name, nonce,
      [this, nonce, epoch = context_.epoch](const Result<WithdrawResult>& result) {
        if (epoch == context_.epoch) finish(nonce, result);
      });
}

void Withdrawals::retry_now() {
  std::vector<Nonce> waiting;
  for (auto& [nonce, job] : jobs_) {
    if (job.timer == TimerId::none) continue;
    context_.loop.cancel(std::exchange(job.timer, TimerId::none));
    waiting.push_back(nonce);
  }
  for (const Nonce nonce : waiting) run(nonce);
}

void Withdrawals::retry_later(Nonce nonce, Job& job) {
  job.timer =
      context_.loop.at(context_.loop.now() + context_.backoff(job.failures++), [this, nonce] {
        if (const auto late = jobs_.find(nonce); late != jobs_.end()) {
          late->second.timer = TimerId::none;
        }
        run(nonce);
      });
}

void Withdrawals::finish(Nonce nonce, const Result<WithdrawResult>& result) {
  const auto found = jobs_.find(nonce);
  if (found == jobs_.end()) return;
  Job& job = found->second;
  if (!result && !context_.closing) {
    // Retry after any error until the ticket is gone or the session has ended: a ticket that stays
    // would block all tickets behind it.
    retry_later(nonce, job);
    if (transient(result.error())) return;
    if (!std::exchange(job.reported, true)) {
      context_.log(LogLevel::error, "cannot withdraw from \"" + job.name.text() + "\" on " +
                                        context_.backend.where() +
                                        ", retrying: " + result.error().what());
    }
    for (auto& answer : std::exchange(job.answers, {})) answer(result.error());
    return;
  }
  auto answers = std::move(job.answers);
  const std::string name = job.name.text();
  jobs_.erase(found);
  for (auto& answer : answers) {
    if (!result) {
      answer(result.error());
    } else if (!result->found) {
      answer(Error(Errc::lock_lost, "release \"" + name + "\": the entry was already removed"));
    } else {
      answer(Done{});
    }
  }
}

void Withdrawals::end(const Result<Done>& result) {
  for (auto& [nonce, job] : std::exchange(jobs_, {})) {
    context_.loop.cancel(job.timer);
    for (auto& answer : job.answers) answer(result);
  }
}

}  // namespace baton::internal
