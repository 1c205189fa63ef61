// How the parts of the Engine are put together, and its end. engine_session.cpp has the sessions.
#include "common/client/engine.h"

#include <utility>

namespace baton::internal {

Engine::Engine(Backend& backend, EngineHost& host, LogFunction log, std::uint32_t seed,
               std::uint64_t token_base)
    : context_(backend, host, std::move(log), seed, token_base),
      own_watches_(context_,
                   [this](Nonce nonce) {
                     if (!holds_.look(nonce)) attempts_.own_ticket_event(nonce);
                   }),
      withdrawals_(context_, own_watches_),
      backstop_(
          context_, [this](const std::shared_ptr<Attempt>& waiter) { attempts_.look(waiter); },
          [this](Nonce nonce) { holds_.look(nonce); }),
      holds_(context_, own_watches_, withdrawals_, backstop_),
      attempts_(context_, own_watches_, withdrawals_, backstop_, holds_) {}

Engine::~Engine() { lifetime_.end(); }

void Engine::close(Answer<Done> answer) {
  context_.loop.assert_on_strand();
  context_.closing = true;
  context_.loop.cancel(open_timer_);
  const Error closed(Errc::closed, "the client was closed");
  answer_askers(&closed);
  attempts_.close_all();
  holds_.lose_all(Errc::closed);
  if (context_.session == nullptr && newcomer_ == nullptr) {
    answer(Done{});
    return;
  }
  closed_ = std::move(answer);
  if (context_.session == nullptr) {
    if (!dismissed_) dismiss_newcomer();
    return;
  }
  context_.session->close([this](Result<Done> result) {
    if (context_.session != nullptr) context_.session->lease()->end();
    withdrawals_.end(result);
    if (closed_) std::exchange(closed_, nullptr)(std::move(result));
  });
}

void Engine::abandon() noexcept {
  context_.loop.assert_on_strand();
  context_.closing = true;
  if (context_.session != nullptr) context_.session->lease()->end();
  attempts_.abandon();
  holds_.abandon();
  withdrawals_.abandon();
  askers_.clear();
  newcomer_.reset();
  context_.session.reset();
}

}  // namespace baton::internal
