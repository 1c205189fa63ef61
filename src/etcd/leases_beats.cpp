// Leases: sends the keepalives, and manages the stream for them.
#include "etcd/leases.h"

#include "common/base/mutant.h"

#include <algorithm>
#include <utility>

namespace baton::etcd {

using std::chrono::milliseconds;
using std::chrono::seconds;

void Leases::plan_beat(Time when) {
  on(BeatEvent::planned);
  loop_.cancel(beat_timer_);
  loop_.cancel(std::exchange(late_timer_, TimerId::none));
  loop_.cancel(std::exchange(token_timer_, TimerId::none));
  beat_timer_ = loop_.at(when, [this] { beat(); });
}

void Leases::beat(Token token) {
  loop_.cancel(beat_timer_);
  drop_idle();
  if (std::none_of(leases_.begin(), leases_.end(),
                   [](const auto& l) { return is_for_new_keys(l.second.state()); })) {
    grant();  // so that the next join does not wait for a lease
  }
  if (std::none_of(leases_.begin(), leases_.end(),
                   [](const auto& l) { return is_kept(l.second.state()); })) {
    plan_beat(loop_.now() + Nanos(ttl_) / 3);
    return;
  }
  // The link has a newer token, so the token of this stream has expired or will expire soon.
  if (stream_ != nullptr && !link_.token().empty() && link_.token() != token_) drop_stream();
  if (stream_ == nullptr && token == Token::required && link_.lacks_token()) {
    await_token();
    return;
  }
  loop_.cancel(std::exchange(token_timer_, TimerId::none));
  if (stream_ == nullptr) {
    endpoint_ = link_.current();
    token_ = link_.token();
    stream_ = link_.open(endpoint_, StreamKind::keep_alive, *this);
  }
  // Read the clock before the first byte is written: deadlines count from this time. Each lease has
  // at most one keepalive under way.
  const Time now = loop_.now();
  for (auto& [id, lease] : leases_) {
    if (!is_kept(lease.state()) || lease.unanswered_since) continue;
    lease.unanswered_since = now;
    etcdpb::LeaseKeepAliveRequest request;
    request.set_id(id);
    stream_->send(request);
  }
  on(BeatEvent::beat_sent);
  loop_.cancel(late_timer_);
  late_at_ = now + Nanos(ttl_) / 6;
  late_timer_ = loop_.at(late_at_, [this] { beat_late(); });
}

// Newer servers refuse keepalives on a stream that was opened without a token or with an expired
// token; older servers ignore the token. So a beat waits for a token, but only for TTL/12: even if
// the authentication fails, several beats fit before the deadline.
void Leases::await_token() {
  if (beats_ == BeatState::awaiting_token) return;
  on(BeatEvent::token_missing);
  token_timer_ = loop_.at(loop_.now() + Nanos(ttl_) / 12, [this] {
    token_timer_ = TimerId::none;
    beat(Token::optional);
  });
  link_.with_token(lifetime_.guard([this] {
    // Called even if no token was obtained: a server that needs one reports the reason.
    if (beats_ != BeatState::awaiting_token) return;
    loop_.cancel(std::exchange(token_timer_, TimerId::none));
    beat(Token::optional);
  }));
}

// Closes the stream. Answers still under way on it are lost, so no lease waits for one.
void Leases::drop_stream() {
  stream_.reset();
  for (auto& [id, lease] : leases_) lease.unanswered_since.reset();
}

// Sends a keepalive for one lease, before the next beat.
void Leases::renew(std::int64_t id) {
  if (stream_ == nullptr) {
    beat();
    return;
  }
  const Time now = loop_.now();
  leases_.at(id).unanswered_since = now;
  etcdpb::LeaseKeepAliveRequest request;
  request.set_id(id);
  stream_->send(request);
  const bool timed = awaits_answers(beats_);
  on(BeatEvent::renewal_sent);
  if (timed) return;
  late_at_ = now + Nanos(ttl_) / 6;
  late_timer_ = loop_.at(late_at_, [this] { beat_late(); });
}

void Leases::beat_settled() {
  const bool waiting = std::any_of(leases_.begin(), leases_.end(), [](const auto& lease) {
    return lease.second.unanswered_since.has_value();
  });
  if (!waiting && awaits_answers(beats_)) plan_beat(last_sent_ + Nanos(ttl_) / 3);
}

void Leases::stream_message(const Message& message) {
  const auto& answer = static_cast<const etcdpb::LeaseKeepAliveResponse&>(message);
  // Ignore answers of another cluster: it does not know our leases.
  if (!link_.heard(endpoint_, answer.header())) return;
  const auto found = leases_.find(answer.id());
  if (found == leases_.end()) return;
  Lease& lease = found->second;
  const auto unanswered = std::exchange(lease.unanswered_since, std::nullopt);
  if (!unanswered) return;
  const Time sent = *unanswered;
  failures_ = refusals_ = 0;
  if (answer.ttl() <= 0) {
    if (ends_session(lease.state())) {
      listener_.leases_lost("the store has ended lease " + std::to_string(answer.id()));
      return;
    }
    const bool missed = lease.state() == LeaseState::stale;
    lease.on(LeaseEvent::ended);
    forget(answer.id());
    if (missed) grant();
    return;
  }
  // The deadline counts from the time of sending, never from the time of the answer, and the TTL is
  // never more than was granted.
  const auto ttl = std::min<milliseconds>(
      lease.ttl, seconds(std::min<std::int64_t>(answer.ttl(), lease.ttl.count() / 1000)));
  const Time from = mutant(Mutant::deadline_from_answer) ? loop_.now() : sent;
  lease.deadline = lease_deadline(from, ttl);
  const bool usable = lease.state() == LeaseState::stale;
  lease.on(LeaseEvent::renewed);
  if (!usable) last_sent_ = std::max(last_sent_, sent);  // else the others are still due
  beat_settled();
  const auto alive = lifetime_.watch();
  listener_.leases_renewed();
  if (usable && alive) serve_waiting();
}

void Leases::beat_late() {
  late_timer_ = TimerId::none;
  if (loop_.now() > late_at_ + Nanos(ttl_) / 6) {
    // This loop itself is late, and may not have read answers that have already arrived.
    late_at_ = loop_.now();
    late_timer_ = loop_.at(late_at_ + milliseconds(20), [this] { beat_late(); });
    return;
  }
  Time asked = kNever;  // when the oldest unanswered keepalive was sent
  for (const auto& [id, lease] : leases_) {
    if (lease.unanswered_since) asked = std::min(asked, *lease.unanswered_since);
  }
  if (asked != kNever && asked + Nanos(ttl_) / 6 > loop_.now()) {
    // The remaining unanswered keepalives were sent later, by renew().
    late_at_ = asked + Nanos(ttl_) / 6;
    late_timer_ = loop_.at(late_at_, [this] { beat_late(); });
    return;
  }
  const std::size_t was = endpoint_;
  drop_stream();
  link_.silent(was, "no answer to a keepalive within " + std::to_string(ttl_.count() / 6) + " ms");
  beat();
}

void Leases::stream_ended(const CallResult& why) {
  const std::size_t was = endpoint_;
  drop_stream();
  link_.failed(was, why);
  const Status status = status_of(why);
  if (status != Status::token_expired && status != Status::refused) {
    reopen_soon();
    return;
  }
  // Most likely the token has expired. If permission is still denied with a new token, the token is
  // not the cause, so keep it: authentication is expensive for the server.
  link_.note(was, "a keepalive was refused: " + why.message);
  const bool first = refusals_++ == 0;
  if (first || status == Status::token_expired || token_.empty()) link_.forget_token(token_);
  if (first) {
    plan_beat(loop_.now());
  } else {
    reopen_soon();
  }
}

void Leases::reopen_soon() {
  // Reopens at once while there is an endpoint that was not tried. After that the pause is 100 ms
  // and doubles up to 2 s, limited to TTL/12 so that the lease does not expire meanwhile. Jitter
  // keeps clients from retrying at the same moment.
  const auto tried = static_cast<int>(link_.endpoints());
  Nanos pause{};
  if (++failures_ >= tried) {
    const auto most = std::min<milliseconds>(milliseconds(2'000), ttl_ / 12);
    const auto base =
        std::min<milliseconds>(milliseconds(100) * (1 << std::min(failures_ - tried, 5)),
                               std::max(most, milliseconds(50)));
    std::uniform_int_distribution<std::int64_t> jitter(Nanos(base).count() / 2,
                                                       Nanos(base).count());
    pause = Nanos(jitter(random_));
  }
  plan_beat(loop_.now() + pause);
}

}  // namespace baton::etcd
