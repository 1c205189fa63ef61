#include "zk/session.h"

#include <algorithm>
#include <utility>

namespace baton::zk {

using std::chrono::milliseconds;

namespace {
constexpr milliseconds kReconnect{2'000};
constexpr milliseconds kApart{50};
// Abandon the session when no server has accepted it for this long, or for this many session
// timeouts if that is longer. Servers that were wiped or restored from a backup refuse a client
// that has seen newer state than theirs, and never report that its session has ended. The C client
// does not forget what it has seen. The time is long enough for restarts and elections, through
// which waiters keep their tickets.
constexpr milliseconds kAbandonSessionAfter{60'000};
constexpr int kForlornTimeouts = 6;
}  // namespace

Session::Session(SessionParts parts, SessionListener& listener, Answer<Done> opened)
    : parts_(std::move(parts)),
      last_disconnected_(parts_.loop->now()),
      listener_(listener),
      opened_(std::move(opened)),
      lease_(std::make_shared<LeaseView>(Time{}, Time{})),
      retries_(*parts_.loop, outbox_),
      context_{parts_, outbox_, retries_},
      watches_(*parts_.loop, parts_.watch_budget,
               [this] { return watch_sessions_.open(backstop()); }),
      watch_sessions_(parts_, watches_),
      tickets_(context_, watches_, *this),
      questions_(context_),
      operator_calls_(context_, questions_),
      lock_list_(context_, questions_),
      token_base_(context_, lock_list_) {
  watches_.add_lane(outbox_);
  transport_ = parts_.make_transport(*this);
  outbox_.attach(transport_.get());
  watch_disconnection();
}

Session::~Session() {
  lease_->end();
  parts_.loop->cancel(closing_timer_);
  parts_.loop->cancel(disconnected_timer_);
  heartbeat_.reset();
  transport_.reset();
}

// ---- the transport

void Session::transport_connected(const Connection& connection) {
  if (closing_) {
    if (closed_) say_goodbye();
    return;
  }
  const bool first = heartbeat_ == nullptr;
  if (!first && connection.session != connection_.session) {
    end_session(Errc::session_expired, "the server assigned another session after a reconnect");
    return;
  }
  if (!first && connection.timeout != connection_.timeout) {
    // The deadlines so far were computed with the old timeout.
    end_session(Errc::session_expired, "the server changed the session timeout from " +
                                           std::to_string(connection_.timeout.count()) + " to " +
                                           std::to_string(connection.timeout.count()) + " ms");
    return;
  }
  connection_ = connection;
  connected_ = true;
  disconnected_candidate_.reset();
  parts_.loop->cancel(disconnected_timer_);
  if (first) {
    heartbeat_ = std::make_unique<Heartbeat>(*parts_.loop, *transport_, connection.timeout,
                                             last_disconnected_, [this] { renewed(); });
  }
  // Send the heartbeat first: requests after it may lead to grants, which need its deadline.
  heartbeat_->connected(last_disconnected_);
  outbox_.connected();
  if (!first && !opened_) listener_.session_resumed();
}

// Records the last time without a connection. The leader hears of the session after that time, when
// the session connects again, so a later time allows a later deadline. Also abandons the session
// after kAbandonSessionAfter.
void Session::watch_disconnection() {
  parts_.loop->cancel(disconnected_timer_);
  if (transport_ == nullptr || connected_ || closing_) return;
  const Time now = parts_.loop->now();
  const auto longest = std::max(kAbandonSessionAfter, connection_.timeout * kForlornTimeouts);
  if (heartbeat_ != nullptr && now - disconnected_at_ > longest) {
    end_session(Errc::session_expired, "no server has accepted the session for " +
                                           std::to_string(longest.count() / 1000) + " s");
    return;
  }
  // Two consecutive checks are needed, and then the time of the older one counts: the C client
  // reports "connecting" for a moment after it has connected.
  if (transport_->provably_disconnected()) {
    if (disconnected_candidate_) last_disconnected_ = *disconnected_candidate_;
    disconnected_candidate_ = now;
  } else {
    disconnected_candidate_.reset();
  }
  disconnected_timer_ = parts_.loop->at(now + kApart, [this] { watch_disconnection(); });
}

void Session::transport_disconnected() {
  connected_ = false;
  disconnected_at_ = parts_.loop->now();
  watch_disconnection();
  outbox_.disconnected();
  if (heartbeat_ != nullptr) heartbeat_->disconnected();
}

void Session::transport_ended(Status why, const std::string& detail) {
  switch (why) {
    case Status::auth_failed:
      end_session(Errc::permission_denied, "the server refused our credentials");
      return;
    case Status::expired:
      end_session(Errc::session_expired, "the server ended the session");
      return;
    default:
      end_session(Errc::connection_failed,
                  "cannot start to connect; check the host names of the servers (" + detail + ")");
      return;
  }
}

void Session::tickets_used(bool any) {
  if (heartbeat_ != nullptr) heartbeat_->set_active(any);
}

void Session::transport_event(NodeEvent news, const std::string& path) {
  watches_.news(0, news, path);
}

void Session::end_session(Errc reason, const std::string& detail) {
  if (std::exchange(ended_, true)) return;
  watch_sessions_.end();
  connected_ = false;
  lease_->end();
  outbox_.disconnected();
  questions_.end();
  watches_.stop_looking();
  heartbeat_.reset();
  transport_.reset();  // no answer comes after this
  parts_.loop->cancel(disconnected_timer_);
  if (closing_) {
    if (closed_) say_goodbye();
  } else if (opened_) {
    // The caller may retry, unless the credentials were refused.
    const bool refused = reason == Errc::permission_denied;
    std::exchange(opened_, nullptr)(Error(refused ? reason : Errc::connection_failed, detail));
  } else {
    listener_.session_ended(reason, detail);
  }
}

// ---- the lease

void Session::renewed() {
  const Time now = parts_.loop->now();
  const Time deadline = heartbeat_->deadline();
  if (now < lease_->deadline()) {
    lease_->extend(heartbeat_->suspect_at(), deadline);
  } else if (deadline > now && heartbeat_->write_was_last()) {
    // The lease expired, or there was none: start a new one. Holds under the old one are lost. Only
    // a write starts a lease: a sync is answered even for a session that is about to end.
    lease_->end();
    lease_ = std::make_shared<LeaseView>(heartbeat_->suspect_at(), deadline);
  } else {
    lease_->extend(heartbeat_->suspect_at(), lease_->deadline());  // contact, but no later deadline
  }
  if (!opened_) return;
  heartbeat_->set_active(tickets_.any());
  std::exchange(opened_, nullptr)(Done{});
}

SessionInfo Session::info() const {
  SessionInfo info;
  info.backend = "zk";
  info.endpoint = connection_.endpoint;
  info.timeout = connection_.timeout;
  info.state = ended_       ? SessionState::closed
               : connected_ ? SessionState::connected
                            : SessionState::suspect;
  return info;
}

milliseconds Session::backstop() const {
  return std::clamp(connection_.timeout / 2, milliseconds(1'000), milliseconds(30'000));
}

void Session::close(Answer<Done> answer) {
  closing_ = true;
  watch_sessions_.close();
  watches_.stop_looking();
  parts_.loop->cancel(disconnected_timer_);
  heartbeat_.reset();
  closed_ = std::move(answer);
  if (connected_ || transport_ == nullptr) {
    say_goodbye();
    return;
  }
  // Closing the session at the server removes our entries at once, so wait a short time for a
  // connection.
  closing_timer_ = parts_.loop->at(parts_.loop->now() + kReconnect, [this] { say_goodbye(); });
}

void Session::say_goodbye() {
  parts_.loop->cancel(closing_timer_);
  outbox_.disconnected();  // no request is sent after this
  auto answer = std::exchange(closed_, nullptr);
  if (transport_ == nullptr) {
    parts_.loop->defer([answer = std::move(answer)]() mutable { answer(Done{}); });
  } else {
    transport_->close([answer = std::move(answer)]() mutable { answer(Done{}); });
  }
}

// ---- the calls

void Session::join(const LockName& name, Nonce nonce, Answer<Standing> answer) {
  tickets_.join(name, nonce, std::move(answer));
}

void Session::look(const LockName& name, Nonce nonce, const LookHint&, Answer<Standing> answer) {
  tickets_.look(name, nonce, std::move(answer));
}

void Session::peek(const LockName& name, Answer<bool> busy) {
  tickets_.peek(name, std::move(busy));
}

void Session::withdraw(const LockName& name, Nonce nonce, Answer<WithdrawResult> answer) {
  tickets_.withdraw(name, nonce, std::move(answer));
}

WatchId Session::watch(const LockName& name, const Ticket& ticket, const WatchFor& what,
                       WatchHandler handler) {
  std::optional<std::string> mine;
  if (what.waiter) {
    if (const auto own = tickets_.find(*what.waiter)) mine = context_.path(name, own->node);
  }
  return watches_.watch(context_.path(name, ticket.id), std::move(mine), what.soon,
                        std::move(handler));
}

void Session::unwatch(WatchId id) { watches_.unwatch(id); }

void Session::verify(const LockName&, Nonce nonce, Answer<bool> answer) {
  const Time until = take_wanted_until();
  const auto ticket = tickets_.find(nonce);
  if (ticket == nullptr || !is_present(ticket->state())) {
    parts_.loop->defer([answer = std::move(answer)]() mutable { answer(false); });
    return;
  }
  operator_calls_.verify(ticket, until, std::move(answer));
}

void Session::inspect(const LockName& name, Answer<LockSnapshot> answer) {
  operator_calls_.inspect(name, take_wanted_until(), std::move(answer));
}

void Session::list(std::string_view prefix, Answer<std::vector<std::string>> answer) {
  lock_list_.list(prefix, take_wanted_until(), std::move(answer));
}

void Session::evict(const LockName& name, std::string_view entry_id, Answer<bool> answer) {
  operator_calls_.evict(name, entry_id, take_wanted_until(), std::move(answer));
}

void Session::settle_token_base(std::uint64_t wanted, Answer<std::uint64_t> answer) {
  token_base_.settle(wanted, std::move(answer));
}

}  // namespace baton::zk
