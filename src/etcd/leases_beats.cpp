// The keepalives of Leases, and the stream that carries them.
#include "etcd/leases.h"

#include "common/base/mutant.h"

#include <algorithm>
#include <utility>

namespace baton::etcd {

using std::chrono::milliseconds;
using std::chrono::seconds;

void Leases::schedule() {
  loop_.cancel(beat_timer_);
  beat_timer_ = loop_.at(last_sent_ + Nanos(ttl_) / 3, [this] { beat(); });
}

void Leases::beat(Token token) {
  loop_.cancel(beat_timer_);
  drop_idle();
  if (std::none_of(leases_.begin(), leases_.end(),
                   [](const auto& l) { return !l.second.retired; })) {
    grant();  // the next join need not wait for it
  }
  if (std::all_of(leases_.begin(), leases_.end(),
                  [](const auto& l) { return l.second.unwanted(); })) {
    beat_timer_ = loop_.at(loop_.now() + Nanos(ttl_) / 3, [this] { beat(); });
    return;
  }
  // The stream's token has run out, or will soon: other calls have got a newer one.
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
  // Before the first byte is written. Each lease has one under way at most.
  const Time now = loop_.now();
  for (auto& [id, lease] : leases_) {
    if (lease.unwanted() || std::exchange(lease.waiting, true)) continue;
    lease.sent = now;
    etcdpb::LeaseKeepAliveRequest request;
    request.set_id(id);
    stream_->send(request);
  }
  loop_.cancel(late_timer_);
  late_at_ = now + Nanos(ttl_) / 6;
  late_timer_ = loop_.at(late_at_, [this] { beat_late(); });
}

// Newer servers refuse keepalives on a stream that was opened without a token, or with one that has
// run out; older ones do not look at it. So a beat waits for a token, but only for a short time:
// whatever becomes of the authentication, enough tries fit before the deadline.
void Leases::await_token() {
  if (token_timer_ != TimerId::none) return;
  token_timer_ = loop_.at(loop_.now() + Nanos(ttl_) / 12, [this] {
    token_timer_ = TimerId::none;
    beat(Token::optional);
  });
  link_.with_token([this, alive = alive_] {
    // Also if there is none: the server tells why, if it needs one.
    if (!*alive || token_timer_ == TimerId::none) return;
    loop_.cancel(std::exchange(token_timer_, TimerId::none));
    beat(Token::optional);
  });
}

// Answers that are still on their way on it are not heard any more.
void Leases::drop_stream() {
  stream_.reset();
  for (auto& [id, lease] : leases_) lease.waiting = false;
}

// One alone, before its turn.
void Leases::renew(std::int64_t id) {
  if (stream_ == nullptr) {
    beat();
    return;
  }
  Lease& lease = leases_.at(id);
  lease.waiting = true;
  lease.sent = loop_.now();
  etcdpb::LeaseKeepAliveRequest request;
  request.set_id(id);
  stream_->send(request);
  if (late_timer_ != TimerId::none) return;
  late_at_ = lease.sent + Nanos(ttl_) / 6;
  late_timer_ = loop_.at(late_at_, [this] { beat_late(); });
}

void Leases::beat_settled() {
  const bool waiting = std::any_of(leases_.begin(), leases_.end(),
                                   [](const auto& lease) { return lease.second.waiting; });
  if (waiting || late_timer_ == TimerId::none) return;
  loop_.cancel(std::exchange(late_timer_, TimerId::none));
  schedule();
}

void Leases::stream_message(const Message& message) {
  const auto& answer = static_cast<const etcdpb::LeaseKeepAliveResponse&>(message);
  // Another cluster does not know our leases, which says nothing about them.
  if (!link_.heard(endpoint_, answer.header())) return;
  const auto found = leases_.find(answer.id());
  if (found == leases_.end() || !found->second.waiting) return;
  Lease& lease = found->second;
  lease.waiting = false;
  failures_ = refusals_ = 0;
  if (answer.ttl() <= 0) {
    if (lease.unwanted() || lease.stale) {
      const bool missed = lease.stale && !lease.retired;
      forget(answer.id());
      if (missed) grant();
      return;
    }
    listener_.leases_lost("the store has ended lease " + std::to_string(answer.id()));
    return;
  }
  // From when it was sent, never from when it was answered; and never more than was granted.
  const auto ttl = std::min<milliseconds>(
      lease.ttl, seconds(std::min<std::int64_t>(answer.ttl(), lease.ttl.count() / 1000)));
  const Time from = mutant(Mutant::deadline_from_answer) ? loop_.now() : lease.sent;
  lease.deadline = lease_deadline(from, ttl);
  const bool usable = std::exchange(lease.stale, false);
  if (!usable) last_sent_ = std::max(last_sent_, lease.sent);  // it alone: the others' turn comes
  beat_settled();
  const auto alive = alive_;
  listener_.leases_renewed();
  if (usable && *alive) serve_waiting();
}

void Leases::beat_late() {
  late_timer_ = TimerId::none;
  if (loop_.now() > late_at_ + Nanos(ttl_) / 6) {
    // This loop is late itself: answers may have arrived that it has not read yet.
    late_at_ = loop_.now();
    late_timer_ = loop_.at(late_at_ + milliseconds(20), [this] { beat_late(); });
    return;
  }
  Time asked = kNever;  // the first of those that are not answered
  for (const auto& [id, lease] : leases_) {
    if (lease.waiting) asked = std::min(asked, lease.sent);
  }
  if (asked != kNever && asked + Nanos(ttl_) / 6 > loop_.now()) {
    // One alone was asked later than the others, which have answered.
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
  loop_.cancel(std::exchange(late_timer_, TimerId::none));
  link_.failed(was, why);
  const Status status = status_of(why);
  if (status != Status::token_expired && status != Status::refused) {
    reopen_soon();
    return;
  }
  // Most likely the token has run out. Permission that is still denied with a new token does not
  // come from the token: authenticating is expensive for a server.
  link_.note(was, "a keepalive was refused: " + why.message);
  const bool first = refusals_++ == 0;
  if (first || status == Status::token_expired || token_.empty()) link_.forget_token(token_);
  if (first) {
    loop_.cancel(beat_timer_);
    beat_timer_ = loop_.at(loop_.now(), [this] { beat(); });
  } else {
    reopen_soon();
  }
}

void Leases::reopen_soon() {
  // At once where another endpoint may answer; then 100 ms, doubling to 2 s, but never so long that
  // the lease would suffer, and never in step with other clients.
  loop_.cancel(beat_timer_);
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
  beat_timer_ = loop_.at(loop_.now() + pause, [this] { beat(); });
}

}  // namespace baton::etcd
